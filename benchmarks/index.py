"""Measure an index of uses: its size, the time to build it and the time of each question.

    python -m benchmarks.index TEXT [--num-tokens 1000000] [--model MODEL] [--out FOLDER]

The first part of the text is embedded twice, by turns of parts: into an index, and without keeping
the vectors. CPU time is compared, because other programs may run on the machine. Questions are
asked of the whole index, each several times, and medians are reported; the files come from the
page cache. Prints Markdown.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch

from elmore.embed.embedder import Embedder, load
from elmore.explore.build_index import build_index
from elmore.explore.use_index import UseIndex, open_index
from elmore.text.files import read_text

NUM_PARTS = 10
WORDS = ("bank", "light", "play", "the")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=Path)
    parser.add_argument("--num-tokens", type=int, default=1_000_000)
    parser.add_argument("--model")
    parser.add_argument("--out", type=Path, help="keep the index in this folder")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        embedder = load(arguments.model)
        parts = write_parts(arguments.text, folder, num_tokens=arguments.num_tokens)
        out = arguments.out or folder / "index"
        print_building(embedder, parts, out)
        index = open_index(out)
        print_questions(index, embedder, repeats=arguments.repeats)


def write_parts(text: Path, folder: Path, *, num_tokens: int) -> list[Path]:
    """Write the first tokens of a text to several tokenized files."""
    sentences = read_text(text)
    paths = []
    for number in range(NUM_PARTS):
        path = folder / f"part{number}.txt"
        lines = list(take_tokens(sentences, num_tokens // NUM_PARTS))
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        paths.append(path)
    return paths


def take_tokens(sentences: Iterator, num_tokens: int) -> Iterator[str]:
    for sentence in sentences:
        yield "\t".join(sentence.tokens)
        num_tokens -= len(sentence.tokens)
        if num_tokens <= 0:
            return


def print_building(embedder: Embedder, parts: list[Path], out: Path) -> None:
    """Build the index part by part, and embed each part without keeping anything."""
    seconds: dict[str, float] = {"embedding": 0.0, "index": 0.0}
    wall: dict[str, float] = dict(seconds)

    def embed_part(path: Path) -> None:
        sentences = (sentence.tokens for sentence in read_text(path, form="tokenized"))
        for _ in embedder.windows(sentences, layers="all"):
            pass

    def index_part(path: Path) -> None:
        build_index(path, out, model=embedder, form="tokenized")

    for number, path in enumerate(parts):
        steps = [("embedding", embed_part), ("index", index_part)]
        for name, step in steps if number % 2 else reversed(steps):
            started, started_wall = time.process_time(), time.perf_counter()
            step(path)
            seconds[name] += time.process_time() - started
            wall[name] += time.perf_counter() - started_wall
    index = open_index(out)
    num_bytes = sum(path.stat().st_size for path in out.iterdir())
    ratio = seconds["index"] / seconds["embedding"]
    print(f"{torch.get_num_threads()} threads; kernel {embedder.kernel}.\n")
    print("| | |\n|---|---:|")
    print(f"| tokens | {index.num_tokens:,} |")
    print(f"| different words | {index.num_words:,} |")
    print(f"| layers | {', '.join(map(str, index.layers))} |")
    print(f"| size | {num_bytes / 1e6:,.0f} MB |")
    print(f"| bytes per token | {num_bytes / index.num_tokens:,.0f} |")
    print(f"| embedding alone, CPU seconds | {seconds['embedding']:.1f} |")
    print(f"| building the index, CPU seconds | {seconds['index']:.1f} |")
    print(f"| what writing adds, CPU time | {100 * (ratio - 1):.1f} % |")
    print(
        f"| what writing adds, wall time | {100 * (wall['index'] / wall['embedding'] - 1):.1f} % |"
    )
    print()


def print_questions(index: UseIndex, embedder: Embedder, *, repeats: int) -> None:
    print("| question | milliseconds | CPU milliseconds |\n|---|---:|---:|")
    show("open the index", lambda: open_index(index.folder), repeats)
    layer = index.layers[-1]
    words = [word for word in WORDS if index.uses(word, limit=1).total]
    for word in words:
        found = index.uses(word)
        shown = f"{found.total:,} uses" + (f", {len(found.uses):,} of them" * found.is_sample)
        show(f"uses of {word!r} ({shown})", lambda word=word: index.uses(word), repeats)
        uses = found.uses
        show(f"PCA of these in layer {layer}", lambda uses=uses: index.map(uses, layer), repeats)
    use = index.uses(words[0]).uses[0]
    for number in index.layers:
        show(
            f"nearest uses of all, layer {number}",
            lambda number=number: index.nearest(use, number),
            repeats,
        )
    show("nearest uses of the same word", lambda: index.nearest(use, layer, word=use.word), repeats)
    sentence = "He sat on the bank of the river and watched the boats."

    def ask_typed() -> None:
        index.nearest(index.typed_use(embedder, sentence, "bank"), layer)

    show("nearest uses of a typed one", ask_typed, repeats)
    show("groups of uses", lambda: index.groups(index.uses(words[0]).uses, layer), 3)


def show(name: str, ask: Callable[[], object], repeats: int) -> None:
    """Print the median time of a question; the first time does not count."""
    ask()
    walls, cpus = [], []
    for _ in range(repeats):
        started, started_wall = time.process_time(), time.perf_counter()
        ask()
        cpus.append(time.process_time() - started)
        walls.append(time.perf_counter() - started_wall)
    print(f"| {name} | {1000 * median(walls):,.1f} | {1000 * median(cpus):,.1f} |")


if __name__ == "__main__":
    main()

"""Compare scikit-learn's `transform` and spaCy's `nlp.pipe` with `Embedder.embed`.

    python -m benchmarks.integrations [--text FILE] [--repeats 7] [--json PATH]

All read the same tokens, 100 kB of text, in turns in one process; medians are compared. spaCy gets
docs with their tokens, so its tokenizer does not count. Token vectors are cached in all of them.
"""

import argparse
import json
from pathlib import Path

import spacy
from spacy.tokens import Doc

import elmore
from benchmarks.sentences import load_sentences
from benchmarks.timing import Contestant, take_turns
from elmore.integrations.sklearn import ElmoTokenVectorizer, ElmoVectorizer

NUM_BYTES = 100_000
LIMIT = 1.15
EMBEDDER = "Embedder.embed"


def cut_text(text: Path | None) -> list[list[str]]:
    """Return sentences of 100 kB, spaces between tokens included."""
    taken, num_bytes = [], 0
    for sentence in load_sentences(text, num_tokens=NUM_BYTES // 2):
        taken.append(sentence)
        num_bytes += len(" ".join(sentence).encode()) + 1
        if num_bytes >= NUM_BYTES:
            break
    return taken


def make_contestants(sentences: list[list[str]]) -> list[Contestant]:
    embedder = elmore.load()
    rows = ElmoVectorizer(embedder).fit(sentences)
    tokens = ElmoTokenVectorizer(embedder).fit(sentences)
    contestants = [
        Contestant(name=EMBEDDER, run=lambda: embedder.embed(sentences)),
        Contestant(name="ElmoVectorizer.transform", run=lambda: rows.transform(sentences)),
        Contestant(name="ElmoTokenVectorizer.transform", run=lambda: tokens.transform(sentences)),
    ]
    for keep_layers in (True, False):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmore", config={"keep_layers": keep_layers})
        docs: list[Doc] = []

        def make_docs(nlp: spacy.Language = nlp, docs: list[Doc] = docs) -> None:
            docs[:] = [Doc(nlp.vocab, words=sentence) for sentence in sentences]

        def read_docs(nlp: spacy.Language = nlp, docs: list[Doc] = docs) -> None:
            for _ in nlp.pipe(docs):
                pass

        name = "nlp.pipe" if keep_layers else "nlp.pipe, keep_layers=False"
        contestants.append(Contestant(name=name, run=read_docs, prepare=make_docs))
    return contestants


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sentences = cut_text(arguments.text)
    timings = take_turns(make_contestants(sentences), repeats=arguments.repeats)
    base = timings[EMBEDDER].median
    print(f"{sum(map(len, sentences))} tokens in {len(sentences)} sentences\n")
    print("| | seconds | times Embedder.embed | at most |\n|---|---:|---:|---:|")
    for name, timing in timings.items():
        print(f"| `{name}` | {timing.median:.2f} | {timing.median / base:.2f} | {LIMIT} |")
    if arguments.json:
        seconds = {name: timing.seconds for name, timing in timings.items()}
        arguments.json.write_text(json.dumps(seconds, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""How fast the drop-in modules of `elmore.compat` are, compared with elmore's own Embedder.

    python -m benchmarks.compat_speed [--model small] [--tokens 20000] [--repeats 5]

The model is in bilm-tf's format with random weights. The text is generated, in batches of 64
sentences; all layers are computed, with state carried from batch to batch by all contestants. They
take turns in one process. A first run fills the caches of token vectors.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import elmore
from benchmarks.models import CONFIGS
from benchmarks.sentences import Sentences, load_sentences
from benchmarks.timing import Contestant, take_turns
from elmore.compat.allennlp.commands.elmo import ElmoEmbedder
from elmore.compat.allennlp.modules.elmo import Elmo, batch_to_ids
from elmore.compat.bilm import Batcher, BidirectionalLanguageModel
from elmore.compat.elmoformanylangs import Embedder
from elmore.compat.simple_elmo import ElmoModel
from elmore.weights.bilm_tf import write_bilm_tf
from elmore.weights.elmo_model import new_model

BATCH_SIZE = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=CONFIGS, default="small")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    sentences = load_sentences(None, num_tokens=arguments.tokens)
    num_tokens = sum(map(len, sentences))
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "model.hdf5"
        write_bilm_tf(new_model(CONFIGS[arguments.model], seed=0), weights)
        for group in make_groups(weights, sentences):
            cpu_seconds: dict[str, list[float]] = {}
            counted = [count_cpu_time(contestant, cpu_seconds) for contestant in group]
            timings = take_turns(counted, repeats=arguments.repeats)
            cpu = {name: median(seconds) for name, seconds in cpu_seconds.items()}
            own = group[0].name
            for name, timing in timings.items():
                print(
                    f"{name:42} {num_tokens / timing.median:9,.0f} tokens/s"
                    f"   {timing.median / timings[own].median:5.2f} of the time"
                    f"   {cpu[name] / cpu[own]:5.2f} of the CPU time"
                )
            print()


def count_cpu_time(contestant: Contestant, seconds: dict[str, list[float]]) -> Contestant:
    """Also collect the CPU time of all threads, which other programs disturb less."""

    def run() -> object:
        started = time.process_time()
        result = contestant.run()
        seconds.setdefault(contestant.name, []).append(time.process_time() - started)
        return result

    return replace(contestant, run=run)


def make_groups(weights: Path, sentences: Sentences) -> list[list[Contestant]]:
    """Return what is compared: elmore's own Embedder first, then the drop-in modules."""
    options = str(weights.parent / "options.json")
    batches = [sentences[i : i + BATCH_SIZE] for i in range(0, len(sentences), BATCH_SIZE)]

    def own(state: str, layers: str = "all") -> Callable[[], Any]:
        embedder = elmore.load(weights, state=state, layers=layers)
        return lambda: embedder.embed(sentences, rows=BATCH_SIZE)

    def embed_all(policy: str) -> Callable[[], Any]:
        embedder = ElmoEmbedder(options, str(weights), policy=policy)
        return lambda: list(embedder.embed_sentences(sentences, BATCH_SIZE))

    module = Elmo(options, str(weights), 1, dropout=0.0)
    bilm, batcher = BidirectionalLanguageModel(options, weights), Batcher(None, 50)
    simple = ElmoModel()
    simple.load(weights.parent, max_batch_size=BATCH_SIZE)
    many = Embedder(weights, BATCH_SIZE)
    return [
        [
            Contestant(name="elmore.Embedder, state carried", run=own("stream")),
            Contestant(name="allennlp ElmoEmbedder", run=embed_all("stream")),
            Contestant(
                name="allennlp Elmo, batch_to_ids",
                run=lambda: [module(batch_to_ids(batch)) for batch in batches],
            ),
            Contestant(
                name="bilm Batcher, BidirectionalLanguageModel",
                run=lambda: [bilm(batcher.batch_sentences(batch)) for batch in batches],
            ),
        ],
        [
            Contestant(name="elmore.Embedder, mean of layers", run=own("stream", "average")),
            Contestant(
                name="simple_elmo get_elmo_vectors",
                run=lambda: simple.get_elmo_vectors(sentences, warmup=False),
            ),
        ],
        [
            Contestant(name="elmore.Embedder, sorted by length", run=own("reset")),
            Contestant(
                name="elmoformanylangs sents2elmo", run=lambda: many.sents2elmo(sentences, -2)
            ),
            Contestant(name='allennlp ElmoEmbedder(policy="reset")', run=embed_all("reset")),
        ],
    ]


if __name__ == "__main__":
    main()

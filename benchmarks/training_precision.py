"""Train in f32 and in bf16 from the same weights, taking turns, and compare speed and perplexity.

    python -m benchmarks.training_precision CORPUS [SETTINGS.toml] [--steps 150] [--set K=V]

All runs read the same text with the same negatives, so their difference is that of rounding. The
third one lets torch use all threads too, instead of leaving them to native code. The learning rate
decays over the last third of the steps. Prints a Markdown table: the median time of a step, and the
perplexity on held-out text, with the full softmax in f32.
"""

import argparse
import time
from contextlib import nullcontext
from pathlib import Path
from statistics import median

from elmore.corpus.corpus import Corpus, open_corpus
from elmore.corpus.sample import sample_documents
from elmore.corpus.sources import weigh_inputs
from elmore.jobs.device import read_device
from elmore.jobs.freed_memory import keeping_freed_memory
from elmore.lm.distributed import Group
from elmore.lm.network import make_model, make_softmax
from elmore.lm.perplexity import measure_losses
from elmore.lm.settings import load_settings
from elmore.lm.trainer import Trainer

ENGLISH = Path(__file__).parents[1] / "recipes" / "english" / "second" / "settings.toml"
METHODS = {"f32": "f32", "bf16": "bf16", "bf16, torch with all threads": "bf16"}
UNTIMED_STEPS = 2


def make_trainer(corpus_path: Path, settings_path: Path, changes: list[str]) -> Trainer:
    settings = load_settings(settings_path, changes)
    corpus = weigh_inputs(open_corpus(corpus_path), settings.training.weights)
    elmo = make_model(settings, corpus)
    softmax = make_softmax(settings, elmo.config, counts=corpus.counts)
    return Trainer(settings, corpus, elmo, softmax, group=Group(device=read_device("cpu")))


def measure_perplexity(trainer: Trainer, corpus: Corpus, *, max_tokens: int) -> float:
    trainer.elmo.eval()
    totals = measure_losses(
        trainer.elmo,
        trainer.softmax,
        corpus.vocabulary,
        documents=sample_documents(corpus.heldout, max_tokens=max_tokens),
    )
    return totals.perplexity


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("settings", type=Path, nargs="?", default=ENGLISH)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--heldout-tokens", type=int, default=20_000)
    parser.add_argument("--set", dest="changes", action="append", default=[])
    arguments = parser.parse_args()
    length = [
        f"training.max_steps={arguments.steps}",
        f"optimizer.warmup_steps={arguments.steps // 5}",
        f"optimizer.decay_steps={arguments.steps // 3}",
        "optimizer.final_share=0.02",
    ]
    trainers = {
        name: make_trainer(
            arguments.corpus,
            arguments.settings,
            [*length, *arguments.changes, f"training.precision={precision}"],
        )
        for name, precision in METHODS.items()
    }
    trainers["bf16, torch with all threads"]._threads = nullcontext
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    tokens = dict.fromkeys(METHODS, 0)
    with keeping_freed_memory():
        for _ in range(arguments.steps):
            for name, trainer in trainers.items():
                started = time.perf_counter()
                tokens[name] += trainer.step([]).num_predictions
                seconds[name].append(time.perf_counter() - started)
    corpus = open_corpus(arguments.corpus)
    print("| method | step, ms | tokens/s | times as fast | tokens read | perplexity |")
    print("|---|---:|---:|---:|---:|---:|")
    first = median(seconds["f32"][UNTIMED_STEPS:])
    for name, trainer in trainers.items():
        step = median(seconds[name][UNTIMED_STEPS:])
        perplexity = measure_perplexity(trainer, corpus, max_tokens=arguments.heldout_tokens)
        print(
            f"| {name} | {1000 * step:.0f} | {tokens[name] / arguments.steps / step:,.0f} "
            f"| {first / step:.2f} | {tokens[name]:,} | {perplexity:.1f} |"
        )


if __name__ == "__main__":
    main()

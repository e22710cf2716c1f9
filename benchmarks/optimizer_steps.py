"""Measure the CPU time of a training step with each optimizer.

    python -m benchmarks.optimizer_steps CORPUS [SETTINGS ...] [--rows 128 256] [--steps 3]

CORPUS was made by `elmore prepare`. SETTINGS are TOML files or names of those that come with
elmore, by default small and medium. Steps of the optimizers take turns; the table has the fastest
of each, with one thread. Prints a Markdown table.
"""

import argparse
import time
from pathlib import Path

import torch

from elmore.corpus.corpus import Corpus, open_corpus
from elmore.jobs.device import read_device
from elmore.lm.distributed import Group
from elmore.lm.network import make_model, make_softmax
from elmore.lm.settings import load_settings
from elmore.lm.trainer import Trainer

CONFIGS = Path(__file__).parents[1] / "src" / "elmore" / "configs"
OPTIMIZERS = {
    "adamw": ["optimizer.name=adamw"],
    "muon": ["optimizer.name=muon"],
    "muon, all large matrices": ["optimizer.name=muon", "optimizer.muon_max_side=100000"],
}


def make_trainer(path: Path, changes: list[str], corpus: Corpus) -> Trainer:
    settings = load_settings(path, changes)
    elmo = make_model(settings, corpus)
    softmax = make_softmax(settings, elmo.config, counts=corpus.counts)
    return Trainer(settings, corpus, elmo, softmax, group=Group(device=read_device("cpu")))


def measure_steps(path: Path, *, rows: int, corpus: Corpus, num_steps: int) -> dict[str, float]:
    """Return the CPU seconds of the fastest step by optimizer."""
    trainers = {
        name: make_trainer(path, [*changes, f"training.rows={rows}"], corpus)
        for name, changes in OPTIMIZERS.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in trainers}
    for _ in range(num_steps):
        for name, trainer in trainers.items():
            started = time.process_time()
            trainer.step([])
            seconds[name].append(time.process_time() - started)
    return {name: min(own) for name, own in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("settings", nargs="*", default=["small", "medium"])
    parser.add_argument("--rows", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    corpus = open_corpus(arguments.corpus)
    print(f"| settings | rows | {' | '.join(OPTIMIZERS)} |")
    print(f"|---|---:|{'---:|' * len(OPTIMIZERS)}")
    for name in arguments.settings:
        path = Path(name) if name.endswith(".toml") else CONFIGS / f"{name}.toml"
        for rows in arguments.rows:
            found = measure_steps(path, rows=rows, corpus=corpus, num_steps=arguments.steps)
            cells = " | ".join(f"{seconds:.2f} s" for seconds in found.values())
            print(f"| {name} | {rows} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

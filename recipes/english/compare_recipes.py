"""Compare training recipes at equal CPU time.

    python -m recipes.english.compare_recipes CORPUS OUT [NAME ...] [--steps 170]
    python -m recipes.english.compare_recipes --table OUT

Trains every recipe of RECIPES, or those given, from random weights for as much CPU time as
`--steps` steps of the base recipe take, and writes OUT/NAME.json. Recipes that already have a file
are skipped, so a rerun resumes.

The cost of a recipe is measured first: its steps and those of the base take turns, and the ratio of
the medians decides how many steps it gets. So other programs on the machine change neither the
number of steps nor the result.
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import elmore
from elmore.corpus.corpus import Corpus, open_corpus
from elmore.corpus.sample import sample_documents
from elmore.corpus.sources import weigh_inputs
from elmore.jobs.device import read_device
from elmore.lm import muon
from elmore.lm.distributed import Group
from elmore.lm.network import make_model, make_softmax
from elmore.lm.perplexity import measure_losses
from elmore.lm.settings import PretrainSettings, load_settings
from elmore.lm.trainer import Trainer

SETTINGS = Path(__file__).with_name("settings.toml")
CONFIGS = Path(elmore.__file__).with_name("configs")
WEIGHTS = {"modern_*": 2, "articles": 2, "books": 2, "abstracts": 1}
WARMUP_SHARE, DECAY_SHARE, FINAL_SHARE = 0.2, 0.3, 0.02
TIMED_STEPS, UNTIMED_STEPS = 5, 2
HELDOUT_TOKENS = 20_000
AVERAGE_EVERY = 5
AVERAGE_DECAY = 0.9
"""Of the averaged weights, each time: they follow the last 50 steps or so."""

BASE = {
    "optimizer.name": "muon",
    "optimizer.learning_rate": 0.004,
    "training.rows": 256,
    "training.window": 20,
    "softmax.num_negatives": 2048,
    "training.seed": 1,
}
ADAMW = {"optimizer.name": "adamw", "optimizer.learning_rate": 0.002}
FILE = "file"
"""Not a setting: start from these settings of elmore's instead of the base recipe."""
GATES = "gates one by one"
"""Not a setting: orthogonalize the updates of the four gates of an LSTM separately."""

RECIPES: dict[str, dict[str, Any]] = {
    "muon-0.004": {},
    "adamw-0.002": ADAMW,
    "muon-0.006": {"optimizer.learning_rate": 0.006},
    "gates": {GATES: True},
    "cells-1024": {"model.lstm.cell_dim": 1024},
    "muon-0.003": {"optimizer.learning_rate": 0.003},
    "negatives-1024": {"softmax.num_negatives": 1024},
    "negatives-4096": {"softmax.num_negatives": 4096},
    "window-40": {"training.window": 40, "training.rows": 128},
    "adamw-128-rows": {**ADAMW, "training.rows": 128},
    "muon-0.004-seed-2": {"training.seed": 2},
    "adamw-0.002-seed-2": {**ADAMW, "training.seed": 2},
    "adamw-0.004": {**ADAMW, "optimizer.learning_rate": 0.004},
    "muon-0.008": {"optimizer.learning_rate": 0.008},
    "muon-128-rows": {"training.rows": 128},
    "decay-0.1": {"optimizer.weight_decay": 0.1},
    "bf16": {"training.precision": "bf16"},
    "small-adamw": {FILE: "small", **ADAMW, "softmax.num_negatives": 8192},
    "small-adamw-seed-2": {
        FILE: "small",
        **ADAMW,
        "softmax.num_negatives": 8192,
        "training.seed": 2,
    },
    "small-2048": {FILE: "small", **ADAMW},
    "small-2048-seed-2": {FILE: "small", **ADAMW, "training.seed": 2},
    "small-2048-muon": {FILE: "small"},
    "small-2048-muon-seed-2": {FILE: "small", "training.seed": 2},
    "small-muon": {FILE: "small", "softmax.num_negatives": 8192},
    "small-muon-0.002": {
        FILE: "small",
        "softmax.num_negatives": 8192,
        "optimizer.learning_rate": 0.002,
    },
}


def read_recipe(name: str, *, num_steps: int) -> PretrainSettings:
    """Return the settings of a recipe for a run of `num_steps`."""
    recipe = RECIPES[name]
    path = CONFIGS / f"{recipe[FILE]}.toml" if FILE in recipe else SETTINGS
    values = {**({} if FILE in recipe else BASE), **recipe}
    for other in (GATES, FILE):
        values.pop(other, None)
    values |= {
        "training.max_steps": num_steps,
        "optimizer.warmup_steps": round(WARMUP_SHARE * num_steps),
        "optimizer.decay_steps": round(DECAY_SHARE * num_steps),
        "optimizer.final_share": FINAL_SHARE,
    }
    return load_settings(path, [f"{name}={value}" for name, value in values.items()])


def make_trainer(settings: PretrainSettings, corpus: Corpus) -> Trainer:
    """Return a trainer with random weights."""
    elmo = make_model(settings, corpus)
    softmax = make_softmax(settings, elmo.config, counts=corpus.counts)
    return Trainer(settings, corpus, elmo, softmax, group=Group(device=read_device("cpu")))


@contextmanager
def gates_one_by_one(*, cell_dim: int) -> Iterator[None]:
    """Let Muon treat the rows of each gate as a matrix of its own."""
    whole = muon.orthogonalize

    def orthogonalize(matrix: Tensor) -> Tensor:
        if matrix.shape[0] != 4 * cell_dim:
            return whole(matrix)
        gates = torch.cat([whole(gate) for gate in matrix.chunk(4)])
        # Muon scales by the larger side of the whole matrix.
        return gates * math.sqrt(max(cell_dim, matrix.shape[1]) / max(matrix.shape))

    muon.orthogonalize = orthogonalize
    try:
        yield
    finally:
        muon.orthogonalize = whole


def measure_cost(recipe: Trainer, base: Trainer) -> tuple[float, float]:
    """Return the CPU seconds of a step of both, taking turns."""
    seconds: list[list[float]] = [[], []]
    for number in range(UNTIMED_STEPS + TIMED_STEPS):
        for trainer, own in zip((recipe, base), seconds, strict=True):
            started = time.process_time()
            trainer.step([])
            if number >= UNTIMED_STEPS:
                own.append(time.process_time() - started)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def measure(trainer: Trainer, corpus: Corpus) -> float:
    """Return the perplexity on held-out text, with the full softmax."""
    trainer.elmo.eval()
    totals = measure_losses(
        trainer.elmo,
        trainer.softmax,
        corpus.vocabulary,
        documents=sample_documents(corpus.heldout, max_tokens=HELDOUT_TOKENS),
    )
    trainer.elmo.train()
    return totals.perplexity


def measure_average(trainer: Trainer, corpus: Corpus, average: dict[str, Tensor]) -> float:
    """Return the perplexity with averaged weights; the trainer keeps its own."""
    own = {name: weight.clone() for name, weight in trainer.weights().items()}
    trainer.load_weights(average)
    perplexity = measure(trainer, corpus)
    trainer.load_weights(own)
    return perplexity


@torch.no_grad()
def follow(average: dict[str, Tensor], weights: dict[str, Tensor]) -> None:
    """Move the average towards the current weights."""
    for name, value in weights.items():
        if name in average and value.is_floating_point():
            average[name].lerp_(value, 1.0 - AVERAGE_DECAY)
        else:
            average[name] = value.clone()


def train(settings: PretrainSettings, corpus: Corpus) -> dict[str, Any]:
    """Train to the end; measure before and after the decay, with and without averaged weights."""
    trainer = make_trainer(settings, corpus)
    num_steps = trainer.num_steps
    decay_starts = num_steps - int(settings.optimizer.decay_steps or 0)
    tokens, seconds, curve = 0, 0.0, []
    average: dict[str, Tensor] = {}
    for step in range(1, num_steps + 1):
        started = time.process_time()
        tokens += trainer.step([]).num_predictions
        seconds += time.process_time() - started
        if step % AVERAGE_EVERY == 0 or not average:
            follow(average, trainer.weights())
        if step in (num_steps // 3, decay_starts, num_steps):
            line = {
                "step": step,
                "tokens": tokens,
                "cpu_seconds": round(seconds, 1),
                "perplexity": measure(trainer, corpus),
            }
            if step >= decay_starts:
                line["averaged_perplexity"] = measure_average(trainer, corpus, average)
            print(json.dumps(line), flush=True)
            curve.append(line)
    return {"num_steps": num_steps, "curve": curve}


def run_recipe(name: str, corpus: Corpus, *, base_steps: int) -> dict[str, Any]:
    """Find how many steps a recipe gets, and train it."""
    settings = read_recipe(name, num_steps=base_steps)
    cell_dim = settings.model["lstm"]["cell_dim"]

    def with_gates(work: Callable[[], Any]) -> Any:
        if not RECIPES[name].get(GATES):
            return work()
        with gates_one_by_one(cell_dim=cell_dim):
            return work()

    base = read_recipe("muon-0.004", num_steps=base_steps)
    cost, base_cost = with_gates(
        lambda: measure_cost(make_trainer(settings, corpus), make_trainer(base, corpus))
    )
    # With no difference but numbers, the costs are the same.
    is_same_work = not set(RECIPES[name]) - {"optimizer.learning_rate", "training.seed"}
    ratio = 1.0 if is_same_work else cost / base_cost
    settings = read_recipe(name, num_steps=max(1, round(base_steps / ratio)))
    return {
        "name": name,
        "changes": RECIPES[name],
        "base_steps": base_steps,
        "step_seconds": cost,
        "base_step_seconds": base_cost,
        "threads": torch.get_num_threads(),
        **with_gates(lambda: train(settings, corpus)),
    }


def print_table(folder: Path) -> None:
    """Print the results as Markdown, best first."""
    results = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    results.sort(key=lambda result: result["curve"][-1]["perplexity"])
    print("| recipe | steps | tokens | CPU-s | before decay | averaged | end | averaged |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for result in results:
        before, end = result["curve"][-2:]
        cells = [
            result["name"],
            f"{result['num_steps']:,}",
            f"{end['tokens'] / 1e6:.2f}M",
            f"{end['cpu_seconds']:.0f}",
            *(
                f"{line[key]:.1f}"
                for line in (before, end)
                for key in ("perplexity", "averaged_perplexity")
            ),
        ]
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Read the arguments, and train what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("names", nargs="*", choices=[*RECIPES, []])
    parser.add_argument("--steps", type=int, default=170)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print the results in CORPUS")
    arguments = parser.parse_args()
    if arguments.table:
        print_table(arguments.corpus)
        return
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    corpus = weigh_inputs(open_corpus(arguments.corpus), WEIGHTS)
    for name in arguments.names or RECIPES:
        path = arguments.out / f"{name}.json"
        if path.exists():
            continue
        print(name, flush=True)
        result = run_recipe(name, corpus, base_steps=arguments.steps)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(result, indent=1) + "\n")
        temporary.replace(path)


if __name__ == "__main__":
    main()

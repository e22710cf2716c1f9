"""Compute the time of a training step on 8 to 256 machines from compute speed and network speed.

    python -m benchmarks.network [--config original] [--rows 128] [--tokens-per-second 146 20000]

Every machine trains --rows rows. What a machine sends and receives per step follows from the
network's sizes: a ring all-reduce moves each dense gradient 2 (N - 1) / N times, and the gradients
of the sampled words (the negatives, and the words of the window) too; LSTM states are gathered
everywhere. --tokens-per-second is what one machine computes: the first default is measured on two
CPU cores (benchmarks.pretraining_speed), the second stands for a GPU and is an assumption. Two
times per cell: dense gradients are sent during the backward pass (two thirds of the computation),
so the first assumes that they overlap with it completely, and the second that nothing overlaps.
Prints Markdown.
"""

import argparse
from dataclasses import dataclass

import torch

from elmore.build import build_bilm
from elmore.lm.network import complete_config
from elmore.lm.settings import PretrainSettings, load_settings
from elmore.settings import find_config

MACHINES = (8, 32, 64, 256)
GIGABITS = (1, 10, 25, 100)
BACKWARD = 2 / 3  # of the computation
# An assumption: the tokens of a step are at most this many different words.
MOST_DISTINCT_WORDS = 20_000


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes that one machine sends per step; it receives as many."""

    dense: float
    sparse: float
    states: float

    @property
    def total(self) -> float:
        return self.dense + self.sparse + self.states


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.network")
    parser.add_argument("--config", default="original")
    parser.add_argument("--rows", type=int, default=128, help="rows per machine")
    parser.add_argument("--tokens-per-second", type=float, nargs="+", default=[146, 20_000])
    arguments = parser.parse_args()
    settings = load_settings(find_config(arguments.config), [])
    print("| machines | gradients | dense, MB | sampled words, MB | states, MB | total, MB |")
    print("|---:|---|---:|---:|---:|---:|")
    for machines in MACHINES:
        for name, size in (("f32", 4), ("bf16", 2)):
            sent = count_bytes(settings, machines=machines, rows=arguments.rows, size=size)
            cells = [sent.dense, sent.sparse, sent.states, sent.total]
            print(f"| {machines} | {name} | " + " | ".join(f"{c / 1e6:,.0f}" for c in cells) + " |")
    for speed in arguments.tokens_per_second:
        print_times(settings, rows=arguments.rows, tokens_per_second=speed)


def count_bytes(settings: PretrainSettings, *, machines: int, rows: int, size: int) -> Traffic:
    """Return what a machine sends per step, with gradients of `size` bytes per number."""
    config = complete_config(settings.model, num_characters=0, num_words=0)
    with torch.device("meta"):
        bilm = build_bilm(config)
    num_dense = sum(weight.numel() for weight in bilm.parameters())
    lstm = config.lstm
    num_tokens = rows * machines * settings.training.window
    num_words = settings.softmax.num_negatives + min(num_tokens, MOST_DISTINCT_WORDS)
    share = (machines - 1) / machines
    num_states = rows * machines * lstm.num_layers * 2 * (lstm.cell_dim + lstm.output_dim)
    return Traffic(
        dense=2 * share * num_dense * size,
        sparse=2 * share * num_words * (lstm.output_dim + 1) * size,
        states=share * num_states * 4,
    )


def print_times(settings: PretrainSettings, *, rows: int, tokens_per_second: float) -> None:
    """Print a table of step times."""
    compute = rows * settings.training.window / tokens_per_second
    print(
        f"\n{tokens_per_second:,.0f} tokens/s per machine: {compute:,.2f} s of computation per step"
    )
    print("\n| machines | gradients | " + " | ".join(f"{g} Gb/s" for g in GIGABITS) + " |")
    print("|---:|---|" + "---:|" * len(GIGABITS))
    for machines in MACHINES:
        for name, size in (("f32", 4), ("bf16", 2)):
            sent = count_bytes(settings, machines=machines, rows=rows, size=size)
            cells = []
            for gigabits in GIGABITS:
                per_byte = 8 / (gigabits * 1e9)
                left = max(0.0, sent.dense * per_byte - compute * BACKWARD)
                best = compute + left + (sent.sparse + sent.states) * per_byte
                cells.append(f"{best:,.2f} to {compute + sent.total * per_byte:,.2f} s")
            print(f"| {machines} | {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()

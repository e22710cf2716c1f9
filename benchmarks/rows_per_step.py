"""Measure the LSTMs of the original size by the number of sentences that are read together.

    python -m benchmarks.rows_per_step TEXT [--repeats 5]

A step has one row per sentence and uses all weights of both directions. The sentences have 25
tokens each; "32, mixed" are sentences of TEXT with 25 tokens on average, as in case a of
`benchmarks/engine.py`. Prints a Markdown table with the time of a step in one layer, the arithmetic
speed, and the bandwidth needed to read all weights once per step. "limit" is the fastest large
product in that precision.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from benchmarks.models import CONFIGS, lstm_flops
from benchmarks.sentences import choose_window
from benchmarks.timing import Contestant, take_turns
from elmore.config import WEIGHTS_IN_MEMORY, Precision
from elmore.kernels.library import find_kernel
from elmore.kernels.tokens import PackedLinear
from elmore.model.packed_bilm import freeze
from elmore.text.batches import NUM_MARKERS
from elmore.text.files import TextForm, read_sentences
from elmore.weights.elmo_model import new_model

ROWS = (1, 8, 32, 64, 128, 256)
NUM_TOKENS = 25
NUM_MIXED = 32
MAX_SENTENCES = 5000
SIDE = 2048
BYTES = {Precision.F32: 4, Precision.BF16: 2, Precision.INT8: 1}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    config = CONFIGS["original"]
    bilm = new_model(config, seed=0).bilm
    lstm = config.lstm
    # Of one layer and direction: the input's product needs no steps.
    num_weights = 5 * lstm.cell_dim * lstm.output_dim
    sentences = list(islice(read_sentences(arguments.text, form=TextForm.RAW), MAX_SENTENCES))
    mixed = choose_window(sentences, num_sentences=NUM_MIXED, mean_tokens=NUM_TOKENS)
    cases = {str(rows): [NUM_TOKENS + NUM_MARKERS] * rows for rows in ROWS}
    cases[f"{NUM_MIXED}, mixed"] = [len(sentence) + NUM_MARKERS for sentence in mixed]
    print("| precision | sentences | steps | step, ms | GFLOP/s | limit | share | weights, GB/s |")
    print("|---|---|---|---|---|---|---|---|")
    for precision in WEIGHTS_IN_MEMORY:
        network = freeze(bilm, precision=precision)
        contestants = [
            Contestant(
                name=name,
                run=partial(
                    network.contextualize,
                    torch.randn(sum(lengths), lstm.output_dim),
                    torch.tensor(lengths),
                ),
            )
            for name, lengths in cases.items()
        ]
        with torch.inference_mode():
            times = take_turns(contestants, repeats=arguments.repeats)
        limit = find_limit(precision)
        for name, lengths in cases.items():
            seconds, num_steps = times[name].median, max(lengths)
            gflops = lstm_flops(config, sum(lengths)) / seconds / 1e9
            num_bytes = num_steps * 2 * lstm.num_layers * num_weights * BYTES[precision]
            print(
                f"| {precision} | {name} | {num_steps} "
                f"| {1000 * seconds / num_steps / lstm.num_layers:.2f} "
                f"| {gflops:,.0f} | {limit:,.0f} | {gflops / limit:.0%} "
                f"| {num_bytes / seconds / 1e9:.0f} |"
            )


def find_limit(precision: Precision) -> float:
    """Return the speed of the fastest large product, in billions of operations per second."""
    kernel = find_kernel()
    if kernel is None:
        raise SystemExit("there is no native kernel, whose speed this script measures")
    rows = torch.randn(SIDE, SIDE)
    layer = PackedLinear(kernel, torch.randn(SIDE, SIDE), torch.zeros(SIDE), precision=precision)
    return max(2 * SIDE**3 / measure(partial(layer.apply, rows)) / 1e9 for _ in range(10))


def measure(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

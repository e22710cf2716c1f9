"""Measure how many tokens per second a trained task processes, including the biLM.

    python -m benchmarks.predict_speed TASK DATA [--repeats 5]

TASK is a folder of `elmore fit`, DATA a file of its form, such as CoNLL-2003's eng.testb. Reading
the file counts, loading the model does not; no layers come from a cache.
"""

import argparse
import statistics
import time
from pathlib import Path

import torch

from elmore.tasks.fit.folder import load_task_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    model = load_task_model(arguments.task)
    rates = []
    for _ in range(arguments.repeats):
        began = time.perf_counter()
        examples = [example for example, _ in model.predict(model.task.read(arguments.data))]
        seconds = time.perf_counter() - began
        num_tokens = sum(map(model.task.count_tokens, examples))
        rates.append(num_tokens / seconds)
    print(
        f"{num_tokens:,} tokens, {torch.get_num_threads()} threads: median "
        f"{statistics.median(rates):,.0f} tokens a second ({min(rates):,.0f} to {max(rates):,.0f})"
    )


if __name__ == "__main__":
    main()

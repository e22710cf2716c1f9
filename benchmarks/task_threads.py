"""Time training steps of task networks with several thread settings, idle and on a busy machine.

    python -m benchmarks.task_threads [--rounds 5] [--seconds 4] [--busy 1]

Each measurement is a separate process, since OpenMP reads its settings when torch is loaded; the
settings take turns. In every second turn, `--busy` other processes keep cores busy. Prints a
Markdown table of medians: steps per second, and in parentheses the fraction of the fastest.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

KINDS = ("entities", "entailment", "questions")
# Environment, and torch's threads (None: torch's choice).
SETTINGS: dict[str, tuple[dict[str, str], int | None]] = {
    "all threads": ({}, None),
    "all threads, passive": ({"OMP_WAIT_POLICY": "passive"}, None),
    "1 thread": ({}, 1),
}
NUM_LAYERS, LAYER_DIM, NUM_WORDS = 3, 512, 2000


def main() -> None:
    """Measure all settings, or in a child process, one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--busy", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--child", nargs=2, metavar=("KIND", "THREADS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        kind, threads = arguments.child
        print(measure_steps(kind, num_threads=int(threads) or None, seconds=arguments.seconds))
        return
    loads = {"0 busy": 0, f"{arguments.busy} busy": arguments.busy}
    found: dict[tuple[str, str, str], list[float]] = {}
    for turn in range(arguments.rounds):
        names = [*SETTINGS][turn % len(SETTINGS) :] + [*SETTINGS][: turn % len(SETTINGS)]
        for kind in arguments.kinds:
            for load, num_busy in loads.items():
                for name in names:
                    with busy_processes(num_busy):
                        speed = ask_child(kind, name, seconds=arguments.seconds)
                    found.setdefault((kind, load, name), []).append(speed)
    print(f"| steps per second | {' | '.join(SETTINGS)} |")
    print(f"|---|{'---:|' * len(SETTINGS)}")
    for kind in arguments.kinds:
        for load in loads:
            speeds = [median(found[kind, load, name]) for name in SETTINGS]
            cells = [f"{speed:.2f} ({speed / max(speeds):.0%})" for speed in speeds]
            print(f"| {kind}, {load} | {' | '.join(cells)} |")


def ask_child(kind: str, name: str, *, seconds: float) -> float:
    """Return the steps per second of a process with these settings."""
    environment, num_threads = SETTINGS[name]
    child = ["--child", kind, str(num_threads or 0), "--seconds", str(seconds)]
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.task_threads", *child],
        env={**{k: v for k, v in os.environ.items() if not k.startswith("OMP_")}, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(result.stdout))


@contextmanager
def busy_processes(number: int) -> Any:
    """Run processes that keep a core busy."""
    processes = [
        subprocess.Popen([sys.executable, "-c", "while True: sum(range(10**6))"])
        for _ in range(number)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure_steps(kind: str, *, num_threads: int | None, seconds: float) -> float:
    """Train a network of one kind on made-up examples; return its steps per second."""
    import torch  # noqa: PLC0415  OpenMP reads the environment when it is loaded

    from elmore.tasks.fit.model import TaskModel, find_words  # noqa: PLC0415
    from elmore.tasks.fit.optimizer import TaskOptimizer  # noqa: PLC0415
    from elmore.tasks.fit.settings import load_settings  # noqa: PLC0415

    if num_threads is not None:
        torch.set_num_threads(num_threads)
    torch.manual_seed(1)
    settings = load_settings(kind)
    examples, labels = make_examples(kind)
    words = [[f"w{number}" for number in range(NUM_WORDS)]] * 2
    model = TaskModel(
        settings, labels=labels, words=find_words(settings, words), layers=RandomLayers()
    )
    optimizer = TaskOptimizer(model.network, None, training=settings.training, elmo=settings.elmo)
    model.network.train()
    num_steps, began = -2, time.perf_counter()  # the first two warm up
    while num_steps <= 0 or time.perf_counter() - began < seconds:
        if num_steps == 0:
            began = time.perf_counter()
        batch = random.Random(num_steps).sample(examples, settings.training.batch_size)
        optimizer.step(model.loss(batch), rate_share=1.0)
        num_steps += 1
    return num_steps / (time.perf_counter() - began)


class RandomLayers:
    """Random layers that look like cached ones, without a biLM."""

    num_layers, layer_dim = NUM_LAYERS, LAYER_DIM

    def find(self, sentences: Sequence[Sequence[str]]) -> Any:
        import torch  # noqa: PLC0415

        longest = max(map(len, sentences))
        return torch.randn(NUM_LAYERS, len(sentences), longest, LAYER_DIM)


def make_examples(kind: str, *, number: int = 100) -> tuple[list[Any], tuple[str, ...]]:
    """Return examples of typical lengths, and their labels."""
    from elmore.tasks.data.columns import TaggedSentence  # noqa: PLC0415
    from elmore.tasks.kinds.classes import ClassExample  # noqa: PLC0415
    from elmore.tasks.kinds.questions import Passage, QuestionExample  # noqa: PLC0415

    chance = random.Random(0)

    def draw(length: int) -> tuple[str, ...]:
        return tuple(f"w{chance.randrange(NUM_WORDS)}" for _ in range(length))

    if kind == "entities":
        sentences = [draw(15) for _ in range(number)]
        tags = ["B-PER", "I-PER", *["O"] * 13]
        return [TaggedSentence(tokens=list(s), tags=tags) for s in sentences], ("iob2", "PER")
    if kind == "entailment":
        pairs = [(draw(14), draw(8)) for _ in range(number)]
        labels = ("entailment", "neutral", "contradiction")
        return [
            ClassExample(texts=("", ""), sentences=pair, label=chance.choice(labels))
            for pair in pairs
        ], labels
    return [
        QuestionExample(
            name="",
            text="",
            tokens=draw(11),
            passage=Passage(text="", tokens=draw(130)),
            answers=("",),
            spans=((3, 5),),
        )
        for _ in range(number)
    ], ()


if __name__ == "__main__":
    main()

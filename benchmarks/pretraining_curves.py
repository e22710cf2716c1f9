"""Compare learning curves of elmore's trainer and plain PyTorch: held-out perplexity by tokens.

    python -m benchmarks.pretraining_curves CORPUS OUT [--config small] [--tokens 2000000]
        [--only elmore-adagrad plain-adagrad elmore-adamw] [--every 100] [--plot curves.png]

CORPUS is a prepared corpus (`elmore prepare`). Every run starts from the same weights and reads the
same windows; held-out perplexity uses the full softmax, the same text, and state carried within a
document. Seconds include training and reading windows, but not measuring. A run is stored in
OUT/NAME.json; finished runs are not repeated, so runs may be started one by one, and the last
command draws them all. Prints a Markdown table; the plot needs matplotlib.

Plain PyTorch's LSTM cannot clip its cells and outputs as bilm-tf and elmore do, and elmore does
clip while the first steps are large. `--only elmore-unbounded` trains without clipping: the same
function as the plain trainer, apart from the random numbers of dropout.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import describe_machine
from benchmarks.pretraining_parts import Case, ElmoreRun, PlainRun
from benchmarks.pretraining_plot import draw_curves
from elmore.corpus.sample import sample_documents
from elmore.files.atomic import replace_file
from elmore.text.batches import Document

ADAMW = (
    "optimizer.name=adamw",
    "optimizer.learning_rate=0.002",
    "optimizer.warmup_steps=100",
    "optimizer.final_share=0.1",
)
# Plain PyTorch does not clip cells and outputs; with limits this large, elmore never does either.
UNBOUNDED = ("model.lstm.cell_clip=1e9", "model.lstm.output_clip=1e9")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A trainer, and its changes to the settings."""

    make: type[ElmoreRun | PlainRun]
    uses_adamw: bool = False
    changes: tuple[str, ...] = ()


RUNS = {
    "elmore-adagrad": Kind(make=ElmoreRun),
    "plain-adagrad": Kind(make=PlainRun),
    "elmore-adamw": Kind(make=ElmoreRun, uses_adamw=True),
    "plain-adamw": Kind(make=PlainRun, uses_adamw=True),
    "elmore-unbounded": Kind(make=ElmoreRun, changes=UNBOUNDED),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One measurement of a run."""

    step: int
    tokens: int  # predicted, in one direction
    seconds: float  # of training alone
    loss: float | None  # of the steps since the last point, by sampled words
    perplexity: float
    forward_perplexity: float
    backward_perplexity: float


def main() -> None:
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        path = arguments.out / f"{name}.json"
        case = open_case(name, arguments)
        if path.exists() and is_finished(read_curve(path), case, path):
            print(f"{name}: finished before, see {path}", flush=True)
        else:
            train(name, case, arguments, path)
    curves = [
        read_curve(path) for name in RUNS if (path := arguments.out / f"{name}.json").exists()
    ]
    print_table(curves)
    if arguments.plot:
        draw_curves(curves, arguments.plot)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pretraining_curves")
    parser.add_argument("corpus", type=Path, help="folder of a prepared corpus")
    parser.add_argument("out", type=Path, help="folder that keeps the runs")
    parser.add_argument("--only", nargs="*", choices=list(RUNS), default=list(RUNS)[:3])
    parser.add_argument("--config", default="small", help="a name in configs/, or a .toml file")
    parser.add_argument("--tokens", type=int, default=2_000_000, help="predicted a direction")
    parser.add_argument("--every", type=int, default=100, help="steps from measure to measure")
    parser.add_argument("--heldout-tokens", type=int, default=20_000)
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="S.S=V")
    parser.add_argument("--adamw", nargs="*", default=list(ADAMW), metavar="S.S=V")
    parser.add_argument("--threads", type=int, help="threads of torch; default: its own choice")
    parser.add_argument("--plot", type=Path, help="draw all runs in OUT here, a .png")
    return parser.parse_args()


def open_case(name: str, arguments: argparse.Namespace) -> Case:
    """Read the settings of a run; its schedule, if it has one, ends with its last step."""
    kind = RUNS[name]
    config = Path(arguments.config) if "." in arguments.config else arguments.config
    changes = [
        *kind.changes,
        *(arguments.adamw if kind.uses_adamw else ()),
        *arguments.changes,
    ]
    case = Case.open(arguments.corpus, config=config, changes=changes)
    return case.lasting(arguments.tokens)


def is_finished(curve: dict[str, Any], case: Case, path: Path) -> bool:
    """Return whether a run is finished; raise an error if its settings or corpus differ."""
    is_same = curve["settings"] == case.settings.to_json()
    if curve["is_finished"] and not (is_same and curve["corpus"] == case.corpus.fingerprint):
        raise SystemExit(
            f"{path} is of a run with other settings or another corpus; give those, or another OUT"
        )
    return curve["is_finished"]


def train(name: str, case: Case, arguments: argparse.Namespace, path: Path) -> None:
    """Run to the end; measurements so far are in the file."""
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    documents = sample_documents(case.corpus.heldout, max_tokens=arguments.heldout_tokens)
    if not documents:
        raise SystemExit(f"{arguments.corpus} has no held-out text; prepare it with some")
    curve = {
        "name": name,
        "is_finished": False,
        "corpus": case.corpus.fingerprint,
        "settings": case.settings.to_json(),
        "machine": describe_machine(),
        "points": [],
    }
    run = RUNS[name].make(case)
    num_steps = case.settings.training.max_steps
    assert num_steps is not None
    for point in train_and_measure(run, documents, num_steps=num_steps, every=arguments.every):
        print(
            f"{name}: step {point.step:,} of {num_steps:,}, {point.seconds:,.0f} s, "
            f"perplexity {point.perplexity:,.1f}",
            flush=True,
        )
        curve["points"].append(asdict(point))
        curve["is_finished"] = point.step == num_steps
        with replace_file(path) as temporary:
            temporary.write_text(json.dumps(curve, indent=1) + "\n")


def train_and_measure(
    run: ElmoreRun | PlainRun, documents: list[Document], *, num_steps: int, every: int
):
    """Yield a point at the start, at regular steps and at the end."""
    tokens, seconds = 0, 0.0
    losses: list[tuple[float, int]] = []
    for step in range(num_steps + 1):
        if step % every == 0 or step == num_steps:
            totals = run.measure(documents)
            counted = sum(number for _, number in losses)
            yield Point(
                step=step,
                tokens=tokens,
                seconds=seconds,
                loss=sum(loss * number for loss, number in losses) / counted if counted else None,
                perplexity=totals.perplexity,
                forward_perplexity=totals.forward_perplexity,
                backward_perplexity=totals.backward_perplexity,
            )
            losses = []
        if step < num_steps:
            started = time.perf_counter()
            result = run.step()
            seconds += time.perf_counter() - started
            tokens += result.num_predictions
            losses.append((result.loss, result.num_predictions))


def read_curve(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def print_table(curves: list[dict[str, Any]]) -> None:
    print()
    print("| run | tokens | seconds | tokens/s | perplexity | forward | backward |", end="")
    print(" seconds to plain's last perplexity |")
    print("|---|---|---|---|---|---|---|---|")
    plain = next((curve for curve in curves if curve["name"] == "plain-adagrad"), None)
    for curve in curves:
        last = curve["points"][-1]
        wanted = plain["points"][-1]["perplexity"] if plain else None
        reached = find_seconds(curve["points"], wanted)
        cells = [
            curve["name"] + ("" if curve["is_finished"] else " (unfinished)"),
            f"{last['tokens']:,}",
            f"{last['seconds']:,.0f}",
            f"{last['tokens'] / last['seconds']:,.0f}" if last["seconds"] else "",
            f"{last['perplexity']:,.2f}",
            f"{last['forward_perplexity']:,.2f}",
            f"{last['backward_perplexity']:,.2f}",
            "" if reached is None else f"{reached:,.0f}",
        ]
        print(f"| {' | '.join(cells)} |")


def find_seconds(points: list[dict[str, Any]], perplexity: float | None) -> float | None:
    """Return when a curve first reached a perplexity, or None."""
    if perplexity is None:
        return None
    return next((p["seconds"] for p in points if p["perplexity"] <= perplexity), None)


if __name__ == "__main__":
    main()

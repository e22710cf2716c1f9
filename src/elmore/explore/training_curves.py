"""Curves of training runs, from their metrics: loss and held-out perplexity."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from pathlib import Path
from typing import Any

from elmore.errors import DataError
from elmore.lm.metrics import METRICS, read_metrics

# The smoothed loss is a mean over this share of the run's points on either side.
SMOOTHED_PART = 1 / 60
# More points than a figure can show only make its file larger.
MAX_POINTS = 2000


class By(StrEnum):
    """The x axis of the curves."""

    TOKENS = "tokens"
    HOURS = "hours"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Curve:
    """Points from left to right, all of them finite."""

    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCurves:
    """The curves of one run; a curve without points was not measured."""

    name: str
    loss: Curve
    smoothed_loss: Curve
    forward_perplexity: Curve
    backward_perplexity: Curve
    num_losses_left_out: int
    """The number of losses that were not finite."""
    last_step: int | None
    """The last step of the run; None if it is unfinished."""

    @property
    def has_loss(self) -> bool:
        """Whether any loss was logged."""
        return len(self.loss) > 0

    @property
    def has_perplexity(self) -> bool:
        """Whether anything was measured on held-out text."""
        return len(self.forward_perplexity) + len(self.backward_perplexity) > 0


def read_curves(runs: Sequence[Path], *, by: By) -> list[RunCurves]:
    """Read the metrics of run folders; names are the shortest unique path ends."""
    return [
        make_curves(_read_run(run), name=name, by=by)
        for run, name in zip(runs, _find_names(runs), strict=True)
    ]


def make_curves(lines: Iterable[Mapping[str, Any]], *, name: str, by: By) -> RunCurves:
    """Make the curves of one run from the lines of its metrics."""
    lines = list(lines)
    train = [line for line in lines if line["kind"] == "train"]
    heldout = [line for line in lines if line["kind"] == "heldout"]
    loss = _pick(train, "loss", by=by)
    return RunCurves(
        name=name,
        loss=_thin(loss),
        smoothed_loss=_thin(Curve(loss.x, tuple(smooth(loss.y)))),
        forward_perplexity=_pick(heldout, "forward_perplexity", by=by),
        backward_perplexity=_pick(heldout, "backward_perplexity", by=by),
        num_losses_left_out=len(train) - len(loss),
        # A finished run may have been continued, for more steps.
        last_step=lines[-1]["step"] if lines and lines[-1]["kind"] == "end" else None,
    )


def smooth(values: Sequence[float], *, half_width: int | None = None) -> list[float]:
    """Average each value with `half_width` neighbors on each side; by default a share of all.

    At the start, where curves are steep, windows are shortened to stay symmetric.

    >>> smooth([9, 6, 3, 2, 1, 2, 1], half_width=1)
    [9.0, 6.0, 3.6666666666666665, 2.0, 1.6666666666666667, 1.3333333333333333, 1.5]
    """
    width = round(len(values) * SMOOTHED_PART) if half_width is None else half_width
    sums = [0.0, *accumulate(values)]
    smoothed = []
    for index in range(len(values)):
        reach = min(width, index)
        first, end = index - reach, min(index + reach + 1, len(values))
        smoothed.append((sums[end] - sums[first]) / (end - first))
    return smoothed


def _read_run(run: Path) -> list[dict[str, Any]]:
    path = run / METRICS
    if not path.exists():
        raise DataError(
            f"there is no training run at {run}: it has no {METRICS}; "
            "give the folder that elmore pretrain wrote to"
        )
    return read_metrics(path)


def _find_names(runs: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths that distinguish them all."""
    parts = [Path(os.path.realpath(run)).parts for run in runs]  # also of circular links
    number = 1
    while len({path[-number:] for path in parts}) < len(set(parts)):
        number += 1
    return ["/".join(path[-number:]) for path in parts]


def _pick(lines: Iterable[Mapping[str, Any]], name: str, *, by: By) -> Curve:
    """Return the points that have finite x and y."""
    points = [
        (x, y)
        for line in lines
        if (x := _find_x(line, by=by)) is not None and (y := _finite(line.get(name))) is not None
    ]
    return Curve(tuple(x for x, _ in points), tuple(y for _, y in points))


def _find_x(line: Mapping[str, Any], *, by: By) -> float | None:
    match by:
        case By.TOKENS:
            return _finite(line.get("tokens"))
        case By.HOURS:
            seconds = _finite(line.get("seconds"))
            return None if seconds is None else seconds / 3600
        case By.STEPS:
            return _finite(line.get("step"))


def _finite(value: object) -> float | None:
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _thin(curve: Curve) -> Curve:
    """Keep every n-th point, always including the last."""
    stride = math.ceil(len(curve) / MAX_POINTS) or 1
    kept = slice((len(curve) - 1) % stride, None, stride) if len(curve) else slice(0)
    return Curve(curve.x[kept], curve.y[kept])

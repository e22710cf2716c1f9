"""How many examples a network with ELMo needs to match one without ELMo on all examples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from elmore.comparison.results import WITHOUT
from elmore.comparison.summary import Cell


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """How many examples a variant needs to match the baseline."""

    variant: str
    target: float
    """The baseline's mean score at its largest share."""
    baseline_num_train: int
    num_train: int | None
    """None if the baseline was not reached."""
    is_bound: bool
    """The smallest share already matched the baseline, so fewer may be enough."""


def find_needs(cells: Sequence[Cell]) -> list[Need]:
    """Return the need of each variant that was trained on several shares.

    The list is empty if the baseline did not learn.
    """
    baseline = find_baseline(cells)
    if baseline is None or not baseline.has_learned:
        return []
    lines = [_line(cells, name) for name in dict.fromkeys(cell.variant for cell in cells)]
    return [
        _find_need(line, baseline) for line in lines if len(line) > 1 and line[0].variant != WITHOUT
    ]


def find_baseline(cells: Sequence[Cell]) -> Cell | None:
    """Return the cell without ELMo at the largest share."""
    return max(_line(cells, WITHOUT), key=lambda cell: cell.share, default=None)


def _line(cells: Sequence[Cell], variant: str) -> list[Cell]:
    """Return a variant's cells, fewest examples first."""
    return sorted((cell for cell in cells if cell.variant == variant), key=lambda cell: cell.share)


def _find_need(line: Sequence[Cell], baseline: Cell) -> Need:
    is_bound = line[0].mean >= baseline.mean
    return Need(
        variant=line[0].variant,
        target=baseline.mean,
        baseline_num_train=baseline.num_train,
        num_train=line[0].num_train if is_bound else _find_crossing(line, baseline.mean),
        is_bound=is_bound,
    )


def _find_crossing(line: Sequence[Cell], target: float) -> int | None:
    """Return where the means first reach the target, interpolated linearly on a log axis."""
    for before, after in pairwise(line):
        if before.mean < target <= after.mean:
            part = (target - before.mean) / (after.mean - before.mean)
            num_logs = (math.log(before.num_train), math.log(after.num_train))
            return round(math.exp(num_logs[0] + part * (num_logs[1] - num_logs[0])))
    return None

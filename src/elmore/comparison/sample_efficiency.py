"""How many examples a network with ELMo needs for what one without reaches with all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from elmore.comparison.results import WITHOUT
from elmore.comparison.summary import Cell


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """What a variant needs to be as good as the baseline."""

    variant: str
    target: float
    """The baseline's mean, with the most examples it was trained on."""
    baseline_num_train: int
    num_train: int | None
    """None if the baseline was not reached."""
    is_bound: bool
    """The least that was tried was enough already: it may be fewer."""


def find_needs(cells: Sequence[Cell]) -> list[Need]:
    """Return what each variant needs that was trained on several shares.

    There is nothing to reach where the baseline has learned nothing.
    """
    baseline = find_baseline(cells)
    if baseline is None or not baseline.has_learned:
        return []
    lines = [_line(cells, name) for name in dict.fromkeys(cell.variant for cell in cells)]
    return [
        _find_need(line, baseline) for line in lines if len(line) > 1 and line[0].variant != WITHOUT
    ]


def find_baseline(cells: Sequence[Cell]) -> Cell | None:
    """Return the network without ELMo that was trained on the most examples."""
    return max(_line(cells, WITHOUT), key=lambda cell: cell.share, default=None)


def _line(cells: Sequence[Cell], variant: str) -> list[Cell]:
    """Return a variant's cells from the fewest examples to the most."""
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
    """Return where straight lines between the means first reach the target, on a log axis."""
    for before, after in pairwise(line):
        if before.mean < target <= after.mean:
            part = (target - before.mean) / (after.mean - before.mean)
            num_logs = (math.log(before.num_train), math.log(after.num_train))
            return round(math.exp(num_logs[0] + part * (num_logs[1] - num_logs[0])))
    return None

"""The layer weights that networks learned, over seeds."""

import statistics
from dataclasses import dataclass

from elmore.comparison.results import Comparison, RunResult
from elmore.comparison.summary import find_deviation
from elmore.comparison.wording import clean, describe

POSITIONS = {"below": "input", "above": "output"}


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerRow:
    """One layer mix of a variant."""

    variant: str
    position: str
    means: list[float]
    """The mean weight of each layer, the token layer first."""
    deviations: list[float | None]
    scale: float | None
    """The mean of the learned scales, if recorded."""

    @property
    def position_name(self) -> str:
        """The paper's word for its position."""
        return name_position(self.position)


def name_position(position: str) -> str:
    """Return the paper's word for where a network adds ELMo vectors."""
    return POSITIONS.get(position, clean(position))


def name_layer(number: int) -> str:
    """Return the name of a layer; the lowest has no context."""
    return f"layer {number}" if number else "tokens"


def find_layer_rows(comparison: Comparison, *, share: float) -> list[LayerRow]:
    """Return a row per variant and position with a learned mix."""
    if comparison.settings.get("elmo", {}).get("layers", "mix") != "mix":
        return []
    rows = []
    for variant in comparison.variants:
        runs = comparison.find_runs(variant, share)
        if not describe(variant).learns_shares:
            continue
        for position in dict.fromkeys(position for run in runs for position in run.layer_shares):
            row = _make_row(position, [run for run in runs if position in run.layer_shares])
            if len(row.means) > 1:
                rows.append(row)
    return rows


def _make_row(position: str, runs: list[RunResult]) -> LayerRow:
    # (layers, seeds); all seeds have the same number of layers.
    layers = [
        list(seeds) for seeds in zip(*(run.layer_shares[position] for run in runs), strict=False)
    ]
    scales = [run.scale[position] for run in runs if position in run.scale]
    return LayerRow(
        variant=runs[0].variant,
        position=position,
        means=[statistics.fmean(seeds) for seeds in layers],
        deviations=[find_deviation(seeds) for seeds in layers],
        scale=statistics.fmean(scales) if scales else None,
    )

"""What the layers of a biLM have of the mixes that networks learned, over seeds."""

import statistics
from dataclasses import dataclass

from elmore.comparison.results import Comparison, RunResult
from elmore.comparison.summary import find_deviation
from elmore.comparison.variants import describe
from elmore.comparison.wording import clean

PLACES = {"below": "input", "above": "output"}


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerRow:
    """One mix of a variant."""

    variant: str
    place: str
    means: list[float]
    """Of each layer's share, the tokens' first."""
    deviations: list[float | None]
    scale: float | None
    """The mean of the learned scales, if they were kept."""

    @property
    def place_name(self) -> str:
        """As the paper calls it."""
        return PLACES.get(self.place, clean(self.place))


def name_layer(number: int) -> str:
    """Return what a layer is called; the lowest has no context."""
    return f"layer {number}" if number else "tokens"


def find_layer_rows(comparison: Comparison, *, share: float) -> list[LayerRow]:
    """Return a row for each place of each variant that learned a mix."""
    if comparison.settings.get("elmo", {}).get("layers", "mix") != "mix":
        return []
    rows = []
    for variant in comparison.variants:
        runs = comparison.find_runs(variant, share)
        if not describe(variant).learns_shares:
            continue
        for place in dict.fromkeys(place for run in runs for place in run.layer_shares):
            row = _make_row(place, [run for run in runs if place in run.layer_shares])
            if len(row.means) > 1:
                rows.append(row)
    return rows


def _make_row(place: str, runs: list[RunResult]) -> LayerRow:
    # (layers, seeds); a biLM has as many layers with every seed.
    layers = [
        list(seeds) for seeds in zip(*(run.layer_shares[place] for run in runs), strict=False)
    ]
    scales = [run.scale[place] for run in runs if place in run.scale]
    return LayerRow(
        variant=runs[0].variant,
        place=place,
        means=[statistics.fmean(seeds) for seeds in layers],
        deviations=[find_deviation(seeds) for seeds in layers],
        scale=statistics.fmean(scales) if scales else None,
    )

"""The progress of a task's training, and who follows it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from elmore.jobs.observer import Observer


@dataclass(frozen=True, kw_only=True)
class EpochResult:
    """The training loss and the dev score of one epoch."""

    epoch: int
    step: int
    loss: float  # mean of the training batches; not a number if the training diverged
    dev: float  # the main score
    seconds: float  # of training so far
    rate_share: float = 1.0


@dataclass(kw_only=True)
class FitProgress:
    """All of a run that is not weights."""

    step: int = 0
    epoch: int = 0  # those that are over
    place: int = 0  # batches of this epoch that are over
    loss_sum: float = 0.0  # of this epoch
    best_score: float | None = None
    best_epoch: int = 0
    rate_share: float = 1.0
    num_worse: int = 0  # epochs since the best one
    seconds: float = 0.0
    curve: list[EpochResult] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "FitProgress":
        """Read what `to_json` gave."""
        curve = [EpochResult(**point) for point in values["curve"]]
        return cls(**{**values, "curve": curve})


class FitObserver(Observer):
    """Follows a training; this one ignores everything."""

    def on_step(self, progress: FitProgress, *, num_steps: int, loss: float) -> None:
        """Receive the state of the training after a step of an epoch of `num_steps`."""

    def on_epoch(self, result: EpochResult, *, is_best: bool) -> None:
        """Receive the result of an epoch."""

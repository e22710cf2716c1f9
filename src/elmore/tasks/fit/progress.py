"""The progress of training on a task, and the observer that is notified of it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from elmore.jobs.observer import Observer


@dataclass(frozen=True, kw_only=True)
class EpochResult:
    """The training loss and the dev score of one epoch."""

    epoch: int
    step: int
    loss: float  # mean over the training batches; NaN if the run diverged
    dev: float  # the main score
    seconds: float  # of training so far
    rate_share: float = 1.0


@dataclass(kw_only=True)
class FitProgress:
    """The state of a run except for weights and optimizer; stored in checkpoints."""

    step: int = 0
    epoch: int = 0  # finished epochs
    epoch_step: int = 0  # finished batches of the current epoch
    loss_sum: float = 0.0  # of the current epoch
    best_score: float | None = None
    best_epoch: int = 0
    rate_share: float = 1.0
    num_worse: int = 0  # epochs since the best one
    seconds: float = 0.0
    curve: list[EpochResult] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the progress for JSON; `from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "FitProgress":
        """Read what `to_json` returned."""
        values = dict(values)
        if "place" in values:  # the name before version 0.2
            values["epoch_step"] = values.pop("place")
        curve = [EpochResult(**point) for point in values["curve"]]
        return cls(**{**values, "curve": curve})


class FitObserver(Observer):
    """Is notified of the progress of a training run; this one does nothing."""

    def on_step(self, progress: FitProgress, *, num_steps: int, loss: float) -> None:
        """Receive the progress after a step; the epoch has `num_steps` steps."""

    def on_epoch(self, result: EpochResult, *, is_best: bool) -> None:
        """Receive the result of an epoch."""

"""The progress stored in checkpoints, and which settings may change when a run is resumed."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from elmore.errors import ConfigError, DataError
from elmore.files.owned_folder import ChangedJobError, find_changes
from elmore.lm.schedule import has_same_learning_rates
from elmore.lm.settings import PretrainSettings, read_settings
from elmore.wording import count


@dataclass(kw_only=True)
class SavedProgress:
    """Totals since the start of the run, including the time before it was resumed."""

    step: int = 0
    tokens: int = 0  # predicted, in one direction
    seconds: float = 0.0
    loss: float = 0.0  # summed over both directions since the last line of the metrics
    loss_tokens: int = 0
    loss_seconds: float = 0.0  # `seconds` at the last line of the metrics
    perplexity: float | None = None  # the latest on held-out text
    best_perplexity: float | None = None
    best_step: int = 0
    measurements_since_best: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "SavedProgress":
        """Read the progress of a checkpoint."""
        names = {item.name for item in fields(cls)}
        if set(values) != names:
            raise DataError(
                f"the checkpoint's progress has the fields {sorted(values)}, expected "
                f"{sorted(names)}; it was written by another version of elmore, use that version "
                "or start over with --restart"
            )
        return cls(**values)

    @property
    def mean_loss(self) -> float:
        """The loss per predicted token since the last line, averaged over both directions."""
        return self.loss / (2 * self.loss_tokens) if self.loss_tokens else float("nan")

    def is_best(self, perplexity: float) -> bool:
        """Return whether a measurement is better than all earlier ones."""
        return self.best_perplexity is None or perplexity < self.best_perplexity

    def note_heldout(self, perplexity: float) -> None:
        """Record a measurement."""
        self.perplexity = perplexity
        if self.is_best(perplexity):
            self.best_perplexity, self.best_step = perplexity, self.step
            self.measurements_since_best = 0
        else:
            self.measurements_since_best += 1


# Settings that affect only the learning rate of each step and the end of the run.
SCHEDULE_SETTINGS = (
    "optimizer.learning_rate",
    "optimizer.warmup_steps",
    "optimizer.decay_steps",
    "optimizer.final_share",
    "training.num_epochs",
    "training.max_steps",
)


def check_same_run(
    settings: PretrainSettings,
    fingerprint: str,
    kept: Mapping[str, Any],
    *,
    start: str | None = None,
    folder: Path,
    num_done: int,
    count_steps: Callable[[PretrainSettings], int],
) -> None:
    """Raise an error if a run is resumed with another corpus or other settings.

    The number of steps and the learning rate may change if no completed step is affected.
    """
    if kept.get("start") != start:  # which often changes the architecture too
        raise ChangedJobError(folder, ["another model to start from"])
    # Settings that the checkpoint does not have yet get their defaults.
    settings_before = read_settings(kept["settings"])
    changes = find_changes(
        _select_decisive(settings_before.to_json()), _select_decisive(settings.to_json())
    )
    others = [changes[name] for name in changes if name not in SCHEDULE_SETTINGS]
    # Other source weights give the corpus another fingerprint; then report the settings instead.
    if kept["corpus"] != fingerprint and not others:
        others = ["another corpus"]
    if others:
        raise ChangedJobError(folder, others)
    num_steps = count_steps(settings)
    if num_steps < num_done:
        raise ConfigError(
            f"the run in {folder} has completed {count(num_done, 'step')}, but is set to end after "
            f"{num_steps:,}; raise training.max_steps, or choose another folder"
        )
    is_same = has_same_learning_rates(
        settings_before.optimizer,
        settings.optimizer,
        num_steps_before=count_steps(settings_before),
        num_steps_now=num_steps,
        num_done=num_done if changes else 0,
    )
    if changes and not is_same:
        why = f"which changes the learning rates of the {count(num_done, 'step')} completed"
        raise ChangedJobError(folder, [*changes.values(), why])


def _select_decisive(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the trained weights depend on."""
    others = {name: values for name, values in settings.items() if name != "run"}
    return {
        **others,
        "model": {name: value for name, value in settings["model"].items() if name != "about"},
    }

"""The progress that checkpoints of a run keep, and what may change when it is resumed."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from elmore.errors import ConfigError, DataError
from elmore.files.owned_folder import ChangedJobError, find_changes
from elmore.lm.schedule import is_same_course
from elmore.lm.settings import PretrainSettings, read_settings
from elmore.wording import count


@dataclass(kw_only=True)
class SavedProgress:
    """Counted from the beginning of the run, whatever happened since."""

    step: int = 0
    tokens: int = 0  # predicted, in one direction
    seconds: float = 0.0
    loss: float = 0.0  # of both directions, added up since the last line of the metrics
    loss_tokens: int = 0
    loss_seconds: float = 0.0  # `seconds` at the last line of the metrics
    perplexity: float | None = None  # last measured on held-out text
    best_perplexity: float | None = None
    best_step: int = 0
    measurements_since_best: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "SavedProgress":
        """Read what a checkpoint kept."""
        names = {item.name for item in fields(cls)}
        if set(values) != names:
            raise DataError(
                f"a checkpoint keeps {sorted(values)} of its progress where {sorted(names)} is "
                "wanted; it is of another version of elmore"
            )
        return cls(**values)

    @property
    def mean_loss(self) -> float:
        """The loss a predicted token, of both directions together, since the last line."""
        return self.loss / (2 * self.loss_tokens) if self.loss_tokens else float("nan")

    def is_best(self, perplexity: float) -> bool:
        """Tell whether a measurement is better than all before it."""
        return self.best_perplexity is None or perplexity < self.best_perplexity

    def note_heldout(self, perplexity: float) -> None:
        """Take note of a measurement."""
        self.perplexity = perplexity
        if self.is_best(perplexity):
            self.best_perplexity, self.best_step = perplexity, self.step
            self.measurements_since_best = 0
        else:
            self.measurements_since_best += 1


# What decides nothing but the rate of each step, and when the run ends.
COURSE = (
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
    folder: Path,
    num_done: int,
    count_steps: Callable[[PretrainSettings], int],
) -> None:
    """Refuse to resume a run with another corpus or other settings.

    The length and the learning rates may change if that changes no step taken so far.
    """
    # Settings that are newer than the checkpoint have their defaults there.
    settings_before = read_settings(kept["settings"])
    changes = find_changes(
        _what_matters(settings_before.to_json()), _what_matters(settings.to_json())
    )
    others = [changes[name] for name in changes if name not in COURSE]
    # Other source weights are another reading of the same corpus: then the settings say why.
    if kept["corpus"] != fingerprint and not others:
        others = ["another corpus"]
    if others:
        raise ChangedJobError(folder, others)
    num_steps = count_steps(settings)
    if num_steps < num_done:
        raise ConfigError(
            f"the run in {folder} has taken {count(num_done, 'step')} and would end after "
            f"{num_steps:,}; set a later end (training.max_steps), or give another folder"
        )
    is_same = is_same_course(
        settings_before.optimizer,
        settings.optimizer,
        num_steps_before=count_steps(settings_before),
        num_steps_now=num_steps,
        num_done=num_done if changes else 0,
    )
    if changes and not is_same:
        why = f"which changes the rates of the {count(num_done, 'step')} taken"
        raise ChangedJobError(folder, [*changes.values(), why])


def _what_matters(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that decide the weights."""
    others = {name: values for name, values in settings.items() if name != "run"}
    return {
        **others,
        "model": {name: value for name, value in settings["model"].items() if name != "about"},
    }

"""Every setting of a training run: read from TOML, changed by `--set`, kept beside the run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from elmore.errors import ConfigError
from elmore.settings import (
    CONFIGS,
    apply_change,
    check_number,
    check_positive,
    check_range,
    check_sections,
    read_choice,
    read_section,
    read_toml,
)

MAX_COUNT = 1 << 40
MAX_WEIGHT = 1000


class SoftmaxKind(StrEnum):
    """How the next word's probability is trained."""

    AUTO = "auto"
    """Full for a vocabulary that the negatives would cover, else sampled."""
    SAMPLED = "sampled"
    FULL = "full"
    ADAPTIVE = "adaptive"


class OptimizerName(StrEnum):
    """Which rule changes the weights."""

    ADAGRAD = "adagrad"
    ADAMW = "adamw"
    MUON = "muon"
    """For large matrices; AdamW for the rest."""


class TrainingPrecision(StrEnum):
    """What products are computed in; weights are kept in single precision."""

    F32 = "f32"
    BF16 = "bf16"


# Adagrad's are bilm-tf's. docs/performance.md compares the two.
OPTIMIZER_DEFAULTS: dict[OptimizerName, dict[str, Any]] = {
    OptimizerName.ADAGRAD: {"learning_rate": 0.2, "warmup_steps": 0, "final_share": 1.0},
    OptimizerName.ADAMW: {"learning_rate": 0.002, "warmup_steps": 100, "final_share": 0.1},
    OptimizerName.MUON: {"learning_rate": 0.003, "warmup_steps": 100, "final_share": 0.1},
}


@dataclass(frozen=True, kw_only=True)
class SoftmaxSettings:
    """The softmax over words that both directions share."""

    kind: SoftmaxKind = SoftmaxKind.AUTO
    num_negatives: int = 8192

    def __post_init__(self) -> None:
        """Take strings from TOML, and refuse what cannot be."""
        object.__setattr__(self, "kind", read_choice("softmax.kind", self.kind, SoftmaxKind))
        check_range("softmax.num_negatives", self.num_negatives, 1, 1 << 24)


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """How gradients change the weights.

    Where the rate or its course is not given, it is the usual one of the rule.
    """

    name: OptimizerName = OptimizerName.ADAMW
    learning_rate: float = None  # type: ignore[assignment]
    warmup_steps: int = None  # type: ignore[assignment]
    """Steps in which the rate rises from nothing to `learning_rate`; a quarter of all at most."""
    final_share: float = None  # type: ignore[assignment]
    """What is left of the rate at the end, after a straight way down; 1 keeps it."""
    decay_steps: int | None = None
    """The last steps, in which the rate falls, from the second of them on.

    Without it: all after the warm-up."""
    weight_decay: float = 0.0
    """Of AdamW and Muon; the softmax and biases have none."""
    muon_min_side: int = 128
    """Muon changes matrices whose sides are both at least this; AdamW changes the rest."""
    max_gradient_norm: float = 10.0
    """All gradients together are shortened to this."""

    def __post_init__(self) -> None:
        """Take strings from TOML, and refuse what cannot be."""
        object.__setattr__(self, "name", read_choice("optimizer.name", self.name, OptimizerName))
        for name, value in OPTIMIZER_DEFAULTS[self.name].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        check_range("optimizer.muon_min_side", self.muon_min_side, 1, MAX_COUNT)
        check_range("optimizer.warmup_steps", self.warmup_steps, 0, MAX_COUNT)
        if self.decay_steps is not None:
            check_range("optimizer.decay_steps", self.decay_steps, 0, MAX_COUNT)
        check_positive("optimizer.learning_rate", self.learning_rate)
        check_positive("optimizer.max_gradient_norm", self.max_gradient_norm)
        check_number("optimizer.final_share", self.final_share, least=0, most=1.0)
        check_number("optimizer.weight_decay", self.weight_decay, least=0, most=1.0)
        if self.weight_decay and self.name is OptimizerName.ADAGRAD:
            raise ConfigError(
                "optimizer.weight_decay does nothing for adagrad; set optimizer.name to 'adamw' or "
                "'muon', or weight_decay to 0"
            )


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """What is read, in which portions, how often."""

    rows: int = 128
    """Streams of text read side by side, by all processes together."""
    window: int = 20
    """Symbols of each row a step; gradients go no further back, states do."""
    num_epochs: float = 10.0
    max_steps: int | None = None
    """End earlier, after this many steps."""
    dropout: float = 0.1
    accumulation: int = 1
    """Parts that the rows of a step are read in, one after another, to save memory."""
    precision: TrainingPrecision = TrainingPrecision.F32
    seed: int = 1
    weights: Mapping[str, int] = field(default_factory=dict)
    """How often each source of the corpus is read per epoch, by file name or pattern; else once."""

    def __post_init__(self) -> None:
        """Take strings from TOML, and refuse what cannot be."""
        if not isinstance(self.weights, Mapping):
            raise ConfigError(
                f"training.weights is {self.weights!r:.60}; give a table of names and whole numbers"
            )
        for name, weight in self.weights.items():
            check_range(f"training.weights.{name}", weight, 0, MAX_WEIGHT)
        precision = read_choice("training.precision", self.precision, TrainingPrecision)
        object.__setattr__(self, "precision", precision)
        check_range("training.rows", self.rows, 1, 1 << 20)
        check_range("training.window", self.window, 1, 10_000)
        check_range("training.accumulation", self.accumulation, 1, self.rows)
        check_range("training.seed", self.seed, 0, 1 << 62)
        if self.max_steps is not None:
            check_range("training.max_steps", self.max_steps, 1, MAX_COUNT)
        check_positive("training.num_epochs", self.num_epochs)
        check_number("training.dropout", self.dropout, least=0, most=0.99)
        if self.rows % self.accumulation:
            raise ConfigError(
                f"training.rows = {self.rows} cannot be read in {self.accumulation} equal parts; "
                "make rows a multiple of accumulation"
            )


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How the run is watched and kept; may differ when it is resumed, and changes no step.

    Held-out measurements and patience decide when a run ends, and which weights it keeps.
    """

    checkpoint_minutes: float = 10.0
    checkpoint_steps: int | None = None
    """Checkpoints at every so many steps too."""
    keep_checkpoints: int = 2
    log_steps: int = 10
    heldout_steps: int = 500
    """Held-out perplexity every so many steps."""
    heldout_tokens: int = 20_000
    """Tokens it is measured on, from the beginnings of all held-out documents."""
    final_tokens: int = 200_000
    """The same for the last measurement of a run."""
    patience: int | None = None
    """Stop after this many measurements without a better one, and keep the best weights."""
    rest_tokens: int = 50_000
    """Text that the rest state is computed from; 0 leaves zeros."""
    tensorboard: bool = False
    threads: int | None = None
    """CPU threads a process; without it, torch's choice, shared by the processes of a machine."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        check_positive("run.checkpoint_minutes", self.checkpoint_minutes)
        for name in (
            "keep_checkpoints",
            "log_steps",
            "heldout_steps",
            "heldout_tokens",
            "final_tokens",
        ):
            check_range(f"run.{name}", getattr(self, name), 1, MAX_COUNT)
        for name in ("checkpoint_steps", "patience", "threads"):
            if getattr(self, name) is not None:
                check_range(f"run.{name}", getattr(self, name), 1, MAX_COUNT)
        check_range("run.rest_tokens", self.rest_tokens, 0, MAX_COUNT)


@dataclass(frozen=True, kw_only=True)
class PretrainSettings:
    """A whole run. `model` is what `ModelConfig` reads, less what the corpus decides."""

    model: Mapping[str, Any]
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    run: RunSettings = field(default_factory=RunSettings)

    def to_json(self) -> dict[str, Any]:
        """Return what `read_settings` reads."""
        return json.loads(json.dumps(asdict(self)))


SECTIONS = {
    "softmax": SoftmaxSettings,
    "optimizer": OptimizerSettings,
    "training": TrainingSettings,
    "run": RunSettings,
}


def load_settings(path: Path, changes: Sequence[str] = ()) -> PretrainSettings:
    """Read a TOML file and then each `section.setting=value` of `changes`."""
    values = read_toml(path)
    for change in changes:
        apply_change(values, change)
    try:
        return read_settings(values)
    except ConfigError as error:
        origin = f"{path} with --set" if changes else str(path)
        raise ConfigError(f"{origin}: {error}") from None


def read_settings(values: Mapping[str, Any]) -> PretrainSettings:
    """Check settings as TOML or JSON gives them."""
    check_sections(values, PretrainSettings)
    model = values.get("model")
    if not isinstance(model, Mapping) or "lstm" not in model:
        raise ConfigError(f"there is no [model.lstm]; {CONFIGS} has examples")
    sections = {
        name: read_section(kind, name, values.get(name, {})) for name, kind in SECTIONS.items()
    }
    return PretrainSettings(model=model, **sections)

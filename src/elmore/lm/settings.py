"""Every setting of a training run: read from TOML, changed by `--set`, saved with the run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from elmore.config import TRAINING, Precision, read_precision
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
    """Which softmax the next word is predicted with."""

    AUTO = "auto"
    """Full if the vocabulary is no larger than the number of negatives, otherwise sampled."""
    SAMPLED = "sampled"
    FULL = "full"
    ADAPTIVE = "adaptive"


class OptimizerName(StrEnum):
    """Which optimizer updates the weights."""

    ADAGRAD = "adagrad"
    ADAMW = "adamw"
    MUON = "muon"
    """Muon for large matrices, AdamW for the rest."""


# Adagrad's are those of bilm-tf. docs/performance.md compares the two.
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
        """Convert strings from TOML, and validate."""
        object.__setattr__(self, "kind", read_choice("softmax.kind", self.kind, SoftmaxKind))
        check_range("softmax.num_negatives", self.num_negatives, 1, 1 << 24)


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """The optimizer and its learning rate.

    The learning rate and its schedule default to `OPTIMIZER_DEFAULTS`.
    """

    name: OptimizerName = OptimizerName.ADAMW
    learning_rate: float = None  # type: ignore[assignment]
    warmup_steps: int = None  # type: ignore[assignment]
    """Steps of linear warm-up to `learning_rate`; at most a quarter of all steps."""
    final_share: float = None  # type: ignore[assignment]
    """Fraction of the peak learning rate left at the end; 1 keeps it constant."""
    decay_steps: int | None = None
    """Length of the linear decay at the end of the run; by default, all steps after the warm-up."""
    weight_decay: float = 0.0
    """For AdamW and Muon; not applied to the softmax and biases."""
    muon_min_side: int = 128
    """Muon updates matrices with at least this many rows and columns; AdamW updates the rest."""
    muon_max_side: int = 1024
    """Matrices with more rows and columns than this are left to AdamW: Muon's cost grows with the
    third power of the smaller side."""
    max_gradient_norm: float = 10.0
    """Clip the global gradient norm to this."""

    def __post_init__(self) -> None:
        """Convert strings from TOML, and validate."""
        object.__setattr__(self, "name", read_choice("optimizer.name", self.name, OptimizerName))
        for name, value in OPTIMIZER_DEFAULTS[self.name].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        check_range("optimizer.muon_min_side", self.muon_min_side, 1, MAX_COUNT)
        check_range("optimizer.muon_max_side", self.muon_max_side, self.muon_min_side, MAX_COUNT)
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
    """What each step reads, and how long the run is."""

    rows: int = 128
    """Streams of text read in parallel: the batch size, over all processes."""
    window: int = 20
    """Symbols per row and step: gradients are truncated at its start, LSTM state carries over."""
    skip_steps: int = 0
    """Begin with the text of this step: where an earlier run on the same corpus stopped.

    It must have had the same rows, window and weights of sources.
    """
    num_epochs: float = 10.0
    max_steps: int | None = None
    """Stop after this many steps, even if `num_epochs` would take more."""
    dropout: float = 0.1
    accumulation: int = 1
    """Gradient accumulation: split the rows of a step into this many parts, to save memory."""
    precision: Precision = Precision.F32
    gradients: Precision = Precision.F32
    """Of the gradients that several processes send each other; bf16 halves the traffic."""
    seed: int = 1
    weights: Mapping[str, int] = field(default_factory=dict)
    """How often each source is read per epoch, by file name or pattern; the others once."""

    def __post_init__(self) -> None:
        """Convert strings from TOML, and validate."""
        if not isinstance(self.weights, Mapping):
            raise ConfigError(
                f"training.weights is {self.weights!r:.60}; give a table of names and whole numbers"
            )
        for name, weight in self.weights.items():
            check_range(f"training.weights.{name}", weight, 0, MAX_WEIGHT)
        precision = read_precision("training.precision", self.precision, TRAINING)
        object.__setattr__(self, "precision", precision)
        gradients = read_precision("training.gradients", self.gradients, TRAINING)
        object.__setattr__(self, "gradients", gradients)
        check_range("training.rows", self.rows, 1, 1 << 20)
        check_range("training.window", self.window, 1, 10_000)
        check_range("training.skip_steps", self.skip_steps, 0, MAX_COUNT)
        check_range("training.accumulation", self.accumulation, 1, self.rows)
        check_range("training.seed", self.seed, 0, 1 << 62)
        if self.max_steps is not None:
            check_range("training.max_steps", self.max_steps, 1, MAX_COUNT)
        check_positive("training.num_epochs", self.num_epochs)
        check_number("training.dropout", self.dropout, least=0, most=0.99)
        if self.rows % self.accumulation:
            raise ConfigError(
                f"training.rows = {self.rows} cannot be split into {self.accumulation} equal "
                "parts; make rows a multiple of accumulation"
            )


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Checkpoints, logging and evaluation; these may change when a run is resumed.

    None of them affects a training step. Held-out evaluations and patience decide when a run ends
    and which weights it keeps.
    """

    checkpoint_minutes: float = 10.0
    checkpoint_steps: int | None = None
    """Also write a checkpoint every this many steps."""
    keep_checkpoints: int = 2
    log_steps: int = 10
    heldout_steps: int = 500
    """Measure held-out perplexity every this many steps."""
    heldout_tokens: int = 20_000
    """How many tokens to measure it on, from the beginnings of all held-out documents."""
    final_tokens: int = 200_000
    """The same for the final measurement of a run."""
    patience: int | None = None
    """Stop after this many measurements without improvement, and keep the best weights."""
    rest_tokens: int = 50_000
    """How many tokens the rest state is computed from; 0 leaves it at zero."""
    tensorboard: bool = False
    threads: int | None = None
    """CPU threads per process; by default torch's choice, divided among a machine's processes."""

    def __post_init__(self) -> None:
        """Validate."""
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
    """All settings of a run; `model` is a `ModelConfig` without the sizes taken from the corpus."""

    model: Mapping[str, Any]
    softmax: SoftmaxSettings = field(default_factory=SoftmaxSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    run: RunSettings = field(default_factory=RunSettings)

    def to_json(self) -> dict[str, Any]:
        """Return what `read_settings` takes."""
        return json.loads(json.dumps(asdict(self)))


SECTIONS = {
    "softmax": SoftmaxSettings,
    "optimizer": OptimizerSettings,
    "training": TrainingSettings,
    "run": RunSettings,
}


def load_settings(
    path: Path, changes: Sequence[str] = (), *, needs_model: bool = True
) -> PretrainSettings:
    """Read a TOML file and apply each `section.setting=value` of `changes`."""
    values = read_toml(path)
    for change in changes:
        apply_change(values, change)
    try:
        return read_settings(values, needs_model=needs_model)
    except ConfigError as error:
        origin = f"{path} with changes" if changes else str(path)
        raise ConfigError(f"{origin}: {error}") from None


def read_settings(values: Mapping[str, Any], *, needs_model: bool = True) -> PretrainSettings:
    """Validate settings parsed from TOML or JSON.

    If no model is needed, `model` may be missing, or have no more than `about`.
    """
    check_sections(values, PretrainSettings)
    model = values.get("model", None if needs_model else {})
    has_architecture = isinstance(model, Mapping) and bool(set(model) - {"about"})
    if not isinstance(model, Mapping) or (
        "lstm" not in model and (needs_model or has_architecture)
    ):
        raise ConfigError(f"there is no [model.lstm]; {CONFIGS} has examples")
    sections = {
        name: read_section(kind, name, values.get(name, {})) for name, kind in SECTIONS.items()
    }
    return PretrainSettings(model=model, **sections)

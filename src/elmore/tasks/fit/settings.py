"""The settings of a task: read from TOML, changed by `--set`, saved with the trained network."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from elmore.config import VECTORS, Precision, read_precision
from elmore.errors import ConfigError
from elmore.settings import (
    CONFIGS,
    apply_change,
    check_number,
    check_positive,
    check_range,
    check_sections,
    check_share,
    read_choice,
    read_section,
    read_toml,
)
from elmore.tasks.inputs.elmo_vectors import LayerUse
from elmore.tasks.kinds.table import KINDS, find_kind

TASK_CONFIGS = CONFIGS / "tasks"
MAX_COUNT = 1 << 40


class ElmoPlace(StrEnum):
    """Where ELMo vectors are added to a task network."""

    NONE = "none"
    """Nowhere; this is the baseline."""
    INPUT = "input"
    """To its input: `[x; ELMo]`."""
    OUTPUT = "output"
    """To the output of its encoder: `[h; ELMo]`."""
    BOTH = "both"


class ElmoTraining(StrEnum):
    """Whether the biLM is trained with the task."""

    FROZEN = "frozen"
    """No; its layers are computed once and cached on disk."""
    TASK = "task"
    """Yes, with gradual unfreezing from the top layer down."""


@dataclass(frozen=True, kw_only=True)
class WordSettings:
    """Static word vectors: x in the paper."""

    file: str | None = None
    """GloVe's text format or .npz. Without a file, random vectors are trained with the task."""
    dim: int = 50
    """The width of vectors that are not from a file."""
    max_words: int = 100_000
    """This many words from the start of the file are saved with the network, and all words of the
    training data that the file has."""
    min_count: int = 2
    """Without a file, rarer words of the training data share the vector of unknown words."""
    trained: bool = True
    """Train the file's vectors of words in the training data. Without a file, vectors are always
    trained."""
    dropout: float = 0.0
    """On word vectors and character features."""

    def __post_init__(self) -> None:
        """Check all values."""
        check_range("words.dim", self.dim, 0, 100_000)
        check_range("words.max_words", self.max_words, 0, MAX_COUNT)
        check_range("words.min_count", self.min_count, 1, MAX_COUNT)
        check_share("words.dropout", self.dropout)


@dataclass(frozen=True, kw_only=True)
class CharacterSettings:
    """A small character CNN whose output is concatenated with the word vectors."""

    num_filters: int = 0
    """0 for no character CNN."""
    width: int = 3
    embedding_dim: int = 16
    max_chars: int = 30

    def __post_init__(self) -> None:
        """Check all values."""
        check_range("characters.num_filters", self.num_filters, 0, 100_000)
        check_range("characters.max_chars", self.max_chars, 3, 10_000)
        check_range("characters.width", self.width, 1, self.max_chars)
        check_range("characters.embedding_dim", self.embedding_dim, 1, 100_000)


@dataclass(frozen=True, kw_only=True)
class ElmoSettings:
    """How ELMo vectors are added, and how the biLM is trained."""

    where: ElmoPlace = ElmoPlace.INPUT
    layers: LayerUse = LayerUse.MIX
    layer_norm: bool = False
    """By the mean and variance of the whole batch, as in AllenNLP; a vector then depends on the
    other sentences in its batch."""
    penalty: float = 0.001
    """L2 penalty on the mix weights (lambda in the paper): 1 keeps the layers nearly equally
    weighted, 0 does not constrain them."""
    dropout: float = 0.5
    precision: Precision = Precision.F16
    """Of the layers, whether cached on disk or computed on the fly."""
    training: ElmoTraining = ElmoTraining.FROZEN
    learning_rate: float = 0.0001
    """For the biLM's top layer, if the biLM is trained."""
    rate_decay: float = 2.6
    """Each layer's learning rate is that of the layer above it, divided by this."""
    unfreeze_epochs: float = 1.0
    """The number of epochs before each layer, from the top, is unfrozen; 0 trains all at once."""
    finetune_epochs: float = 0.0
    """Before the task, fine-tune the biLM as a language model on the task's text, for this many
    epochs."""

    def __post_init__(self) -> None:
        """Convert strings from TOML, and check all values."""
        for name, kind in (
            ("where", ElmoPlace),
            ("layers", LayerUse),
            ("training", ElmoTraining),
        ):
            choice = read_choice(f"elmo.{name}", getattr(self, name), kind)
            object.__setattr__(self, name, choice)
        precision = read_precision("elmo.precision", self.precision, VECTORS)
        object.__setattr__(self, "precision", precision)
        check_share("elmo.dropout", self.dropout)
        for name in ("penalty", "unfreeze_epochs", "finetune_epochs"):
            check_number(f"elmo.{name}", getattr(self, name), least=0.0)
        check_number("elmo.rate_decay", self.rate_decay, least=1.0)
        check_positive("elmo.learning_rate", self.learning_rate)


@dataclass(frozen=True, kw_only=True)
class TaskTrainingSettings:
    """How the network is trained."""

    batch_size: int = 32
    max_batch_tokens: int = 16_384
    """Including padding; batches of long examples have fewer examples."""
    learning_rate: float = 0.001
    weight_decay: float = 0.0
    max_gradient_norm: float = 5.0
    min_epoch_steps: int = 100
    """With little data, an epoch repeats it until it has this many steps."""
    max_epochs: int = 50
    patience: int = 10
    """Stop after this many epochs without a better dev score."""
    halve_after: int = 3
    """Halve the learning rate after this many epochs without a better dev score; 0 never does."""
    share: float = 1.0
    """Train on this share of the examples (or of `max_examples`), drawn by the seed."""
    max_examples: int | None = None
    """Train on at most this many examples."""
    seed: int = 1
    checkpoint_minutes: float = 5.0
    threads: int | None = None
    """CPU threads. By default 1, or all cores if the biLM is trained too."""

    def __post_init__(self) -> None:
        """Check all values."""
        counts = ("batch_size", "max_batch_tokens", "min_epoch_steps", "max_epochs", "patience")
        for name in counts:
            check_range(f"training.{name}", getattr(self, name), 1, MAX_COUNT)
        check_range("training.halve_after", self.halve_after, 0, MAX_COUNT)
        check_range("training.seed", self.seed, 0, 1 << 40)
        for name in ("max_examples", "threads"):
            if getattr(self, name) is not None:
                check_range(f"training.{name}", getattr(self, name), 1, MAX_COUNT)
        for name in ("learning_rate", "max_gradient_norm", "share", "checkpoint_minutes"):
            check_positive(f"training.{name}", getattr(self, name))
        check_number("training.weight_decay", self.weight_decay, least=0.0)
        if self.share > 1.0:
            raise ConfigError(
                f"training.share is {self.share}; give a share from 0 to 1, such as 0.1"
            )


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """All settings of a training run; `task` has those of the task itself, such as `hidden_dim`."""

    kind: str
    task: Mapping[str, Any] = field(default_factory=dict)
    words: WordSettings = field(default_factory=WordSettings)
    characters: CharacterSettings = field(default_factory=CharacterSettings)
    elmo: ElmoSettings = field(default_factory=ElmoSettings)
    training: TaskTrainingSettings = field(default_factory=TaskTrainingSettings)

    def to_json(self) -> dict[str, Any]:
        """Return the settings for JSON; `read_settings` reads them back."""
        return json.loads(json.dumps(asdict(self)))

    def with_absolute_paths(self) -> "FitSettings":
        """Return the same settings with absolute paths, valid in any working directory."""
        if self.words.file is None:
            return self
        path = os.path.realpath(Path(self.words.file).expanduser())  # also of a circular link
        return replace(self, words=replace(self.words, file=path))


SECTIONS = {
    "words": WordSettings,
    "characters": CharacterSettings,
    "elmo": ElmoSettings,
    "training": TaskTrainingSettings,
}


def load_settings(
    kind: str, *, config: Path | None = None, changes: Sequence[str] = ()
) -> FitSettings:
    """Read a task's own settings file, or another one, then apply each `section.setting=value`."""
    kind = find_kind(kind).name
    path = config or TASK_CONFIGS / f"{kind}.toml"
    values = read_toml(path)
    settings = _read_from(str(path), values, kind=kind)
    if not changes:
        return settings
    for change in changes:
        apply_change(values, change)
    return _read_from(f"{path} with changes", values, kind=kind)


def _read_from(source: str, values: Mapping[str, Any], *, kind: str) -> FitSettings:
    if values.get("kind", kind) != kind:
        raise ConfigError(
            f"{source}: these settings are for the task {values['kind']!r:.60}, not {kind!r}"
        )
    try:
        return read_settings({**values, "kind": kind})
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def read_settings(values: Mapping[str, Any]) -> FitSettings:
    """Return settings from TOML or JSON values, checked."""
    check_sections(values, FitSettings)
    kind = KINDS.get(str(values.get("kind")))
    if kind is None:
        raise ConfigError(f"unknown task {values.get('kind')!r:.60}; known: {', '.join(KINDS)}")
    sections = {
        name: read_section(section, name, values.get(name, {}))
        for name, section in SECTIONS.items()
    }
    task = asdict(read_section(kind.settings, "task", values.get("task", {})))
    return FitSettings(kind=kind.name, task=task, **sections)

"""Every setting of a task: read from TOML, changed by `--set`, kept beside the trained network."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from elmore.embed.layer_source import LayerPrecision
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
    """Where a task network gets ELMo vectors."""

    NONE = "none"
    """Nowhere: the baseline."""
    INPUT = "input"
    """`[x; ELMo]` below it."""
    OUTPUT = "output"
    """`[h; ELMo]` above it."""
    BOTH = "both"


class ElmoTraining(StrEnum):
    """Whether the biLM learns from the task."""

    FROZEN = "frozen"
    """It does not; its layers are computed once and kept on disk."""
    TASK = "task"
    """It does, from the top layer down."""


@dataclass(frozen=True, kw_only=True)
class WordSettings:
    """Word vectors that do not depend on context: x."""

    file: str | None = None
    """GloVe's text form or .npz; without it vectors are learned with the task."""
    dim: int = 50
    """Of learned vectors."""
    max_words: int = 100_000
    """The first words of the file are kept with the network; those of training always are."""
    min_count: int = 2
    """Of a word in training, to learn a vector for it where there is no file."""
    trained: bool = True
    """Vectors of a file, of training words, go on learning; without a file all vectors learn."""
    dropout: float = 0.0
    """Of words and characters."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        check_range("words.dim", self.dim, 0, 100_000)
        check_range("words.max_words", self.max_words, 0, MAX_COUNT)
        check_range("words.min_count", self.min_count, 1, MAX_COUNT)
        check_share("words.dropout", self.dropout)


@dataclass(frozen=True, kw_only=True)
class CharacterSettings:
    """A small CNN over characters, beside the word vectors."""

    num_filters: int = 0
    """0 for none."""
    width: int = 3
    embedding_dim: int = 16
    max_chars: int = 30

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        check_range("characters.num_filters", self.num_filters, 0, 100_000)
        check_range("characters.max_chars", self.max_chars, 3, 10_000)
        check_range("characters.width", self.width, 1, self.max_chars)
        check_range("characters.embedding_dim", self.embedding_dim, 1, 100_000)


@dataclass(frozen=True, kw_only=True)
class ElmoSettings:
    """How ELMo vectors are added."""

    where: ElmoPlace = ElmoPlace.INPUT
    layers: LayerUse = LayerUse.MIX
    layer_norm: bool = False
    """By mean and variance of a whole batch, as AllenNLP: batch-mates then change a vector."""
    penalty: float = 0.001
    """lambda: 1 keeps the layers' shares nearly equal, 0 leaves them free."""
    dropout: float = 0.5
    precision: LayerPrecision = LayerPrecision.F16
    """Of the layers, kept on disk or computed just now."""
    training: ElmoTraining = ElmoTraining.FROZEN
    learning_rate: float = 0.0001
    """Of the biLM's top layer, if it is trained."""
    rate_decay: float = 2.6
    """A layer's rate is that of the layer above divided by this."""
    unfreeze_epochs: float = 1.0
    """The biLM's top layer joins after so many epochs, each lower one so many later; 0: at once."""
    finetune_epochs: float = 0.0
    """First train the biLM as a language model on the task's text, for so many epochs."""

    def __post_init__(self) -> None:
        """Take strings from TOML, and refuse what cannot be."""
        for name, kind in (
            ("where", ElmoPlace),
            ("layers", LayerUse),
            ("precision", LayerPrecision),
            ("training", ElmoTraining),
        ):
            choice = read_choice(f"elmo.{name}", getattr(self, name), kind)
            object.__setattr__(self, name, choice)
        check_share("elmo.dropout", self.dropout)
        for name in ("penalty", "unfreeze_epochs", "finetune_epochs"):
            check_number(f"elmo.{name}", getattr(self, name), least=0.0)
        check_number("elmo.rate_decay", self.rate_decay, least=1.0)
        check_positive("elmo.learning_rate", self.learning_rate)


@dataclass(frozen=True, kw_only=True)
class TaskTrainingSettings:
    """How the network learns."""

    batch_size: int = 32
    max_batch_tokens: int = 16_384
    """A batch of long examples has fewer of them; places filled up count."""
    learning_rate: float = 0.001
    weight_decay: float = 0.0
    max_gradient_norm: float = 5.0
    min_epoch_steps: int = 100
    """Little data is read several times between two scores of the development data."""
    max_epochs: int = 50
    patience: int = 10
    """Stop after so many epochs without a better score on the development data."""
    halve_after: int = 3
    """Halve the rate after so many; 0 leaves it."""
    share: float = 1.0
    """Of the training examples, drawn by the seed; of `max_examples`, if these are fewer."""
    max_examples: int | None = None
    """Draw no more than so many."""
    seed: int = 1
    checkpoint_minutes: float = 5.0
    threads: int | None = None
    """CPU threads. Without it one, or if the biLM is trained too, as many as there are cores."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
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
            raise ConfigError(f"training.share is {self.share}; give a part of 1, such as 0.1")


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """A whole task; `task` is what its kind reads."""

    kind: str
    task: Mapping[str, Any] = field(default_factory=dict)
    words: WordSettings = field(default_factory=WordSettings)
    characters: CharacterSettings = field(default_factory=CharacterSettings)
    elmo: ElmoSettings = field(default_factory=ElmoSettings)
    training: TaskTrainingSettings = field(default_factory=TaskTrainingSettings)

    def to_json(self) -> dict[str, Any]:
        """Return what `read_settings` reads."""
        return json.loads(json.dumps(asdict(self)))

    def with_whole_paths(self) -> "FitSettings":
        """Return settings that mean the same in any working folder."""
        if self.words.file is None:
            return self
        path = Path(self.words.file).expanduser().resolve()
        return replace(self, words=replace(self.words, file=str(path)))


SECTIONS = {
    "words": WordSettings,
    "characters": CharacterSettings,
    "elmo": ElmoSettings,
    "training": TaskTrainingSettings,
}


def load_settings(
    kind: str, *, config: Path | None = None, changes: Sequence[str] = ()
) -> FitSettings:
    """Read a task's own file of settings, or another one, and then each `section.setting=value`."""
    kind = find_kind(kind).name
    path = config or TASK_CONFIGS / f"{kind}.toml"
    values = read_toml(path)
    settings = _read_from(str(path), values, kind=kind)
    if not changes:
        return settings
    for change in changes:
        apply_change(values, change)
    return _read_from("--set", values, kind=kind)


def _read_from(place: str, values: Mapping[str, Any], *, kind: str) -> FitSettings:
    if values.get("kind", kind) != kind:
        raise ConfigError(f"{place}: these are settings of {values['kind']!r:.60}, not of {kind!r}")
    try:
        return read_settings({**values, "kind": kind})
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None


def read_settings(values: Mapping[str, Any]) -> FitSettings:
    """Check settings as TOML or JSON gives them."""
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

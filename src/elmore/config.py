"""The config of a model: frozen dataclasses, validated on creation, saved as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any

from elmore.errors import ConfigError, warn_caller
from elmore.settings import check_fields, check_range, is_number, read_choice, read_section

FORMAT = 1
# Far above any published model; larger numbers mean a damaged or malicious file.
MAX_DIM = 1 << 20
MAX_VOCABULARY = 1 << 28
MAX_NUMBER = 1e30  # well within float32
# Metadata of a field that older models lack. With its default it is not saved, so older models keep
# their JSON and the hash that vector files and LM heads record.
ADDED_LATER = {"is_later": True}


class Activation(StrEnum):
    """The activation after max-pooling the character filters."""

    RELU = "relu"
    TANH = "tanh"


class Units(StrEnum):
    """The units of char ids."""

    BYTES = "bytes"
    """UTF-8 bytes, as in bilm-tf and AllenNLP."""
    CHARACTERS = "characters"
    """Unicode characters of a fixed list, as in ELMoForManyLangs."""


class Precision(StrEnum):
    """A number format, of weights or of vectors."""

    F32 = "f32"
    """The only one that reproduces published models exactly."""
    F16 = "f16"
    BF16 = "bf16"
    INT8 = "int8"


# The formats that there are for each use.
WEIGHTS_IN_MEMORY = (Precision.F32, Precision.BF16, Precision.INT8)
WEIGHTS_ON_DISK = (Precision.F32, Precision.F16, Precision.BF16)
SOFTMAX_ON_DISK = (*WEIGHTS_ON_DISK, Precision.INT8)
TRAINING = (Precision.F32, Precision.BF16)  # of products; weights are kept in f32
VECTORS = (Precision.F32, Precision.F16)  # in stored layers
VECTORS_IN_FILES = (*VECTORS, Precision.INT8)

# Names that earlier versions used, or that other libraries use.
OTHER_SPELLINGS = {
    "float32": Precision.F32,
    "fp32": Precision.F32,
    "float16": Precision.F16,
    "fp16": Precision.F16,
    "half": Precision.F16,
    "bfloat16": Precision.BF16,
}


def read_precision(name: str, value: Any, allowed: Sequence[Precision]) -> Precision:
    """Return a format from its name, in this or another spelling, if it is one of `allowed`.

    >>> read_precision("dtype", "f16", VECTORS)
    <Precision.F16: 'f16'>
    """
    text = str(getattr(value, "__name__", value)).removeprefix("torch.")  # of numpy's, of torch's
    found = OTHER_SPELLINGS.get(text)
    if found in allowed and isinstance(value, str):
        warn_caller(
            f"{name} {value!r} is now spelled {str(found)!r}",
            FutureWarning,
        )
    for precision in allowed:
        if precision in (text, found):
            return precision
    raise ConfigError(f"{name} is {value!r:.60}; choose one of: {', '.join(allowed)}")


class StatePolicy(StrEnum):
    """The LSTM state that a sentence starts from."""

    RESET = "reset"
    """The initial state: a vector depends only on its sentence and the model."""
    DOCUMENT = "document"
    """The state after the previous sentence of its document."""
    STREAM = "stream"
    """The state after the previous sentence in its row, as always in bilm-tf and AllenNLP."""


@dataclass(frozen=True, kw_only=True)
class CharacterConfig:
    """Char ids and the character CNN."""

    units: Units = Units.BYTES
    num_units: int = 261
    max_chars: int = 50
    """Char ids per token, including the marks at its beginning and end."""
    splits_characters: bool = False
    """Truncate long tokens even inside a character, as published byte models do."""
    embedding_dim: int = 16
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256))
    """Pairs of width and number of filters."""
    activation: Activation = Activation.RELU
    num_highway_layers: int = 1

    def __post_init__(self) -> None:
        """Convert lists and strings from JSON, and check all values."""
        object.__setattr__(self, "units", read_choice("units", self.units, Units))
        object.__setattr__(
            self, "activation", read_choice("activation", self.activation, Activation)
        )
        object.__setattr__(self, "filters", _read_filters(self.filters))
        check_range("num_units", self.num_units, 1, MAX_VOCABULARY)
        check_range("max_chars", self.max_chars, 3, 10_000)
        check_range("embedding_dim", self.embedding_dim, 1, MAX_DIM)
        check_range("num_highway_layers", self.num_highway_layers, 0, 100)
        widest = max(width for width, _ in self.filters)
        if widest > self.max_chars:
            raise ConfigError(
                f"a filter of width {widest} does not fit into max_chars = {self.max_chars}; "
                "narrow the filter or raise max_chars"
            )

    @property
    def output_dim(self) -> int:
        """One number per filter."""
        return sum(number for _, number in self.filters)


@dataclass(frozen=True, kw_only=True)
class WordConfig:
    """Word vectors, in addition to the character CNN or instead of it."""

    num_words: int
    embedding_dim: int
    begin: str = "<S>"
    end: str = "</S>"
    unknown: str = "<UNK>"
    max_chars: int | None = None
    """Words are truncated to this length for lookup, as in ELMoForManyLangs."""

    def __post_init__(self) -> None:
        """Check all values."""
        check_range("num_words", self.num_words, 1, MAX_VOCABULARY)
        check_range("embedding_dim", self.embedding_dim, 1, MAX_DIM)
        if self.max_chars is not None:
            check_range("max_chars", self.max_chars, 1, 10_000)


@dataclass(frozen=True, kw_only=True)
class LSTMConfig:
    """The LSTM layers of each direction."""

    num_layers: int = 2
    cell_dim: int
    output_dim: int
    has_projection: bool = True
    """Without a projection, output_dim must equal cell_dim."""
    cell_clip: float | None = 3.0
    output_clip: float | None = 3.0
    """Clips the output of the projection."""
    has_residuals: bool = True
    """Add a layer's input to its output, from the second layer on."""
    forget_bias: float = 1.0
    """Added to the forget gate at run time; TensorFlow does not store it in the bias."""

    def __post_init__(self) -> None:
        """Check all values."""
        check_range("num_layers", self.num_layers, 1, 100)
        check_range("cell_dim", self.cell_dim, 1, MAX_DIM)
        check_range("output_dim", self.output_dim, 1, MAX_DIM)
        for name in ("cell_clip", "output_clip"):
            clip = getattr(self, name)
            if clip is not None and not (is_number(clip) and clip > 0):
                raise ConfigError(
                    f"{name} is {clip!r:.60}; give a number above 0, or null for no clip"
                )
        if not is_number(self.forget_bias):
            raise ConfigError(f"forget_bias is {self.forget_bias!r:.60}; give a number")
        if not self.has_projection and self.output_dim != self.cell_dim:
            raise ConfigError(
                f"output_dim is {self.output_dim} and cell_dim is {self.cell_dim}, without a "
                "projection; make them equal or set has_projection"
            )


@dataclass(frozen=True, kw_only=True)
class About:
    """Information about a model for people; it does not affect the vectors."""

    name: str = "unnamed"
    source: str = "elmore"
    """The format or program that the weights come from."""
    trained_on: str | None = None
    """None if unknown."""
    is_trained: bool = True
    language: str | None = None
    license: str | None = None
    notes: str | None = None
    training: str | None = None
    """How it was trained and with what results, in Markdown, for the model card."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The config of a biLM."""

    lstm: LSTMConfig
    characters: CharacterConfig | None = None
    words: WordConfig | None = None
    has_token_projection: bool = True
    """Map the token vector to the LSTM's output_dim with a linear layer."""
    about: About = field(default_factory=About)

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        if self.characters is None and self.words is None:
            raise ConfigError("a model needs 'characters', 'words' or both to read tokens")
        if not self.has_token_projection and self.token_dim != self.lstm.output_dim:
            raise ConfigError(
                f"the token vector has {self.token_dim} numbers and the LSTM's output "
                f"{self.lstm.output_dim}; make them equal or set has_token_projection"
            )

    @property
    def token_dim(self) -> int:
        """Width of the token vector (words and characters) before the projection."""
        parts = (
            self.words.embedding_dim if self.words else 0,
            self.characters.output_dim if self.characters else 0,
        )
        return sum(parts)

    @property
    def num_mixed_layers(self) -> int:
        """The LSTM layers and the token layer."""
        return self.lstm.num_layers + 1

    @property
    def vector_dim(self) -> int:
        """Width of a vector: both directions."""
        return 2 * self.lstm.output_dim

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object for `from_json`."""
        return {"format": FORMAT, **_to_json(self)}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> "ModelConfig":
        """Read the output of `to_json`, in this format or an older one."""
        settings = _upgrade(dict(settings))
        return cls(
            lstm=read_section(LSTMConfig, "lstm", settings.pop("lstm", None)),
            characters=_optional_section(CharacterConfig, "characters", settings),
            words=_optional_section(WordConfig, "words", settings),
            about=read_section(About, "about", settings.pop("about", {})),
            **check_fields(cls, "the model's settings", settings),
        )


def _to_json(section: Any) -> dict[str, Any]:
    values = {entry.name: getattr(section, entry.name) for entry in fields(section)}
    left_out = {
        entry.name
        for entry in fields(section)
        if entry.metadata == ADDED_LATER and values[entry.name] == entry.default
    }
    return {
        name: _to_json(value) if is_dataclass(value) else value
        for name, value in values.items()
        if name not in left_out
    }


def _upgrade(settings: dict[str, Any]) -> dict[str, Any]:
    """Upgrade settings of an older format; raise an error for a newer one."""
    found = settings.pop("format", None)
    if found != FORMAT:
        raise ConfigError(
            f"these settings have format {found!r}, this elmore reads {FORMAT}; update elmore"
        )
    return settings


def _optional_section(section: type, name: str, settings: dict[str, Any]) -> Any:
    values = settings.pop(name, None)
    return None if values is None else read_section(section, name, values)


def _read_filters(filters: Any) -> tuple[tuple[int, int], ...]:
    """Check pairs of width and number; JSON has lists instead of tuples."""
    try:
        pairs = tuple((width, number) for width, number in filters)
    except (TypeError, ValueError):
        raise ConfigError(f"filters are {filters!r:.60}; give pairs of width and number") from None
    if not 1 <= len(pairs) <= 100:
        raise ConfigError(f"there are {len(pairs)} filters; give 1 to 100")
    for width, number in pairs:
        check_range("a filter's width", width, 1, 10_000)
        check_range("a filter's number", number, 1, MAX_DIM)
    return pairs

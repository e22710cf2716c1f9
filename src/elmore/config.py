"""Every setting of a model: frozen dataclasses, checked when made, kept as JSON by the weights."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from elmore.errors import ConfigError
from elmore.settings import check_fields, check_range, is_number, read_choice, read_section

FORMAT = 1
# Far above any model that was published; a number past it is a damaged or hostile file.
MAX_DIM = 1 << 20
MAX_VOCABULARY = 1 << 28
MAX_NUMBER = 1e30  # well within single precision


class Activation(StrEnum):
    """What follows the strongest response of each character filter."""

    RELU = "relu"
    TANH = "tanh"


class Units(StrEnum):
    """What a token is spelled in."""

    BYTES = "bytes"
    """UTF-8 bytes, as bilm-tf and AllenNLP."""
    CHARACTERS = "characters"
    """Unicode characters of a fixed list, as ELMoForManyLangs."""


class Precision(StrEnum):
    """How weights are kept. Only f32 gives the vectors of a published model to the last digits."""

    F32 = "f32"
    BF16 = "bf16"
    INT8 = "int8"


class Store(StrEnum):
    """How weights lie on disk; whatever they lie in, they are read in single precision."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"


class StatePolicy(StrEnum):
    """What the LSTMs remember when a sentence begins."""

    RESET = "reset"
    """Nothing: a vector depends on its sentence and the model alone."""
    DOCUMENT = "document"
    """The sentences before it in the same document."""
    STREAM = "stream"
    """Whatever ran before in its row, as bilm-tf and AllenNLP always do."""


@dataclass(frozen=True, kw_only=True)
class CharacterConfig:
    """Spelling, and the convolution over it."""

    units: Units = Units.BYTES
    num_units: int = 261
    max_chars: int = 50
    """Units a token is spelled in, the two marks of its beginning and end included."""
    splits_characters: bool = False
    """Cut a long token between bytes even inside a character, as published byte models do."""
    embedding_dim: int = 16
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256))
    """Pairs of width and number."""
    activation: Activation = Activation.RELU
    num_highway_layers: int = 1

    def __post_init__(self) -> None:
        """Take lists and strings from JSON, and refuse what no network can be built from."""
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
        """One number a filter."""
        return sum(number for _, number in self.filters)


@dataclass(frozen=True, kw_only=True)
class WordConfig:
    """Word vectors, beside the characters or in their place."""

    num_words: int
    embedding_dim: int
    begin: str = "<S>"
    end: str = "</S>"
    unknown: str = "<UNK>"
    max_chars: int | None = None
    """A longer word is looked up by its first characters, as ELMoForManyLangs does."""

    def __post_init__(self) -> None:
        """Refuse what no table can be built from."""
        check_range("num_words", self.num_words, 1, MAX_VOCABULARY)
        check_range("embedding_dim", self.embedding_dim, 1, MAX_DIM)
        if self.max_chars is not None:
            check_range("max_chars", self.max_chars, 1, 10_000)


@dataclass(frozen=True, kw_only=True)
class LSTMConfig:
    """The layers of either direction."""

    num_layers: int = 2
    cell_dim: int
    output_dim: int
    has_projection: bool = True
    """Without one, output_dim is cell_dim."""
    cell_clip: float | None = 3.0
    output_clip: float | None = 3.0
    """Bounds what the projection gives."""
    has_residuals: bool = True
    """Add a layer's input to its output, from the second layer on."""
    forget_bias: float = 1.0
    """Added to the forget gate when running; TensorFlow keeps it out of the stored bias."""

    def __post_init__(self) -> None:
        """Refuse what no network can be built from."""
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
                f"without a projection output_dim ({self.output_dim}) is cell_dim "
                f"({self.cell_dim}); make them equal or set has_projection"
            )


@dataclass(frozen=True, kw_only=True)
class About:
    """What a person wants to know of a model; nothing here changes a vector."""

    name: str = "unnamed"
    source: str = "elmore"
    """The format or program the weights came from."""
    trained_on: str | None = None
    """None where nobody recorded it."""
    is_trained: bool = True
    language: str | None = None
    license: str | None = None
    notes: str | None = None
    training: str | None = None
    """How it was trained and what came of it, in Markdown, for the card."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A whole biLM."""

    lstm: LSTMConfig
    characters: CharacterConfig | None = None
    words: WordConfig | None = None
    has_token_projection: bool = True
    """Map the token vector to the LSTM's output_dim by a linear layer."""
    about: About = field(default_factory=About)

    def __post_init__(self) -> None:
        """Refuse a network whose parts do not fit."""
        if self.characters is None and self.words is None:
            raise ConfigError("a model needs 'characters', 'words' or both to read tokens")
        if not self.has_token_projection and self.token_dim != self.lstm.output_dim:
            raise ConfigError(
                f"without a token projection the token vector ({self.token_dim}) is as wide as "
                f"the LSTM's output ({self.lstm.output_dim}); set has_token_projection"
            )

    @property
    def token_dim(self) -> int:
        """Width of a token's word and character vectors together, before the projection."""
        parts = (
            self.words.embedding_dim if self.words else 0,
            self.characters.output_dim if self.characters else 0,
        )
        return sum(parts)

    @property
    def num_mixed_layers(self) -> int:
        """The LSTM layers, and the tokens below them."""
        return self.lstm.num_layers + 1

    @property
    def vector_dim(self) -> int:
        """Both directions side by side."""
        return 2 * self.lstm.output_dim

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> "ModelConfig":
        """Read settings saved by `to_json`, of this format or an older one."""
        settings = _upgrade(dict(settings))
        return cls(
            lstm=read_section(LSTMConfig, "lstm", settings.pop("lstm", None)),
            characters=_optional_section(CharacterConfig, "characters", settings),
            words=_optional_section(WordConfig, "words", settings),
            about=read_section(About, "about", settings.pop("about", {})),
            **check_fields(cls, "the model's settings", settings),
        )


def _upgrade(settings: dict[str, Any]) -> dict[str, Any]:
    """Bring settings of an older format up to date; refuse those of a newer one."""
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
    """Check pairs of width and number, however JSON gave them."""
    try:
        pairs = tuple((width, number) for width, number in filters)
    except (TypeError, ValueError):
        raise ConfigError(f"filters are {filters!r:.60}; give pairs of width and number") from None
    if not 1 <= len(pairs) <= 100:
        raise ConfigError(f"there are {len(pairs)} filters; give from 1 to 100")
    for width, number in pairs:
        check_range("a filter's width", width, 1, 10_000)
        check_range("a filter's number", number, 1, MAX_DIM)
    return pairs

"""Every setting of a model: frozen dataclasses, checked when made, kept as JSON by the weights."""

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, get_args

from elmore.errors import ConfigError

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
            **_known(cls, "the model's settings", settings),
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


def read_section(section: type, name: str, values: Any) -> Any:
    """Build one dataclass from an object of JSON or TOML, naming what does not fit."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"'{name}' is {values!r:.60}; it must be an object of settings")
    try:
        return section(**_known(section, f"'{name}'", values))
    except TypeError as error:
        raise ConfigError(f"'{name}' lacks a setting: {error}") from error


def _known(section: type, place: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` if each is a field of `section` and of a plain type."""
    names = [item.name for item in fields(section)]
    for key in values:
        if key not in names:
            close = difflib.get_close_matches(str(key), names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
            raise ConfigError(f"unknown setting {key!r:.60} in {place}; {hint}")
    for item in fields(section):
        if item.name in values and not _fits(values[item.name], item.type):
            raise ConfigError(
                f"setting {item.name!r} in {place} is {values[item.name]!r:.60}; "
                f"it must be {_name_type(item.type)}"
            )
    return dict(values)


def _name_type(annotation: Any) -> str:
    """Return what a value must be, for somebody who writes TOML."""
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if isinstance(annotation, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        return " or ".join(map(_name_type, kinds))
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _fits(value: Any, annotation: Any) -> bool:
    """Tell whether a JSON value may stand for a field; the dataclasses check ranges."""
    if isinstance(annotation, UnionType):
        return any(_fits(value, kind) for kind in get_args(annotation))
    if annotation is float:
        return is_number(value)
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if annotation in (bool, str, NoneType):
        return isinstance(value, annotation)
    return value is not None  # a choice, a list or pairs, which their dataclass reads


def is_number(value: Any) -> bool:
    """Tell whether a value is a number that single precision holds."""
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_NUMBER
    )


def read_choice(name: str, value: Any, kind: type[StrEnum]) -> StrEnum:
    """Return one of the kind's names, whether given as such or as a string."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise ConfigError(f"{name} is {value!r:.60}; choose one of: {known}") from None


# Numbers as large as this are bounds for the machine's sake, which nobody need know.
_NO_BOUND = 1 << 40


def check_range(name: str, value: Any, least: int, most: int) -> None:
    """Refuse what is not a whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        is_too_large = isinstance(value, int) and value > most
        is_bounded = most < _NO_BOUND or is_too_large
        bounds = f"from {least} to {most}" if is_bounded else f"from {least} on"
        raise ConfigError(f"{name} is {value!r:.60}; give a whole number {bounds}")


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a number above 0."""
    if not is_number(value) or value <= 0:
        raise ConfigError(f"{name} is {value!r:.60}; give a number above 0")


def check_number(name: str, value: Any, *, least: float, most: float | None = None) -> None:
    """Refuse what is not a number within bounds."""
    if not is_number(value) or value < least or (most is not None and value > most):
        bounds = f"from {least:g} on" if most is None else f"from {least:g} to {most:g}"
        raise ConfigError(f"{name} is {value!r:.60}; give a number {bounds}")


def check_share(name: str, value: Any) -> None:
    """Refuse what cannot be dropped out: all, or more."""
    check_number(name, value, least=0, most=0.99)


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

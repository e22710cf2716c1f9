"""How text becomes a prepared corpus."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from elmore.errors import ConfigError
from elmore.text.files import TextForm
from elmore.text.language import Language


class BadBytesPolicy(StrEnum):
    """What to do about bytes that are not UTF-8."""

    REFUSE = "refuse"
    REPLACE = "replace"
    """U+FFFD takes their place, and they are reported."""


@dataclass(frozen=True, kw_only=True)
class PrepareSettings:
    """What a corpus depends on besides its text."""

    form: TextForm | None = None
    """None: told from each file's name."""

    language: Language = Language.EN

    max_words: int = 800_000
    """The three marks of the vocabulary are not counted."""

    min_count: int = 3

    vocabulary: Path | None = None
    """A list to take as it is; then the two bounds above have no say."""

    extends: bool = False
    """Add words of the text to that list, within the two bounds, as fine-tuning does."""

    heldout: float = 0.01
    """Share of the documents kept from training; not used if held-out files are given."""

    document_sentences: int | None = None
    """A document also ends after so many sentences."""

    seed: int = 0
    """Chooses which documents are held out."""

    bad_bytes: BadBytesPolicy = BadBytesPolicy.REFUSE

    chunk_bytes: int = 16 << 20
    """Text that one shard is made of. Other shards are other files, but the same symbols."""

    max_types: int = 20_000_000
    """Distinct tokens counted at once; about 200 bytes of memory each."""

    def __post_init__(self) -> None:
        """Take strings as paths, and refuse what cannot be."""
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", Path(self.vocabulary))
        _check_at_least("max_words", self.max_words, 0)
        _check_at_least("min_count", self.min_count, 1)
        _check_at_least("max_types", self.max_types, 1)
        _check_at_least("seed", self.seed, 0)
        if self.document_sentences is not None:
            _check_at_least("document_sentences", self.document_sentences, 1)
        if self.extends and self.vocabulary is None:
            raise ConfigError("there is no vocabulary to extend; give one (--vocabulary)")
        if not 0 <= self.heldout < 1:
            raise ConfigError(
                f"heldout is a share of the documents, from 0 to below 1, got {self.heldout}"
            )
        if not 16 <= self.chunk_bytes <= 1 << 30:  # places inside a shard are 32-bit numbers
            raise ConfigError(
                f"chunk_bytes must be from 16 to {1 << 30}, got {self.chunk_bytes}; 16 MB suit"
            )


def _check_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"{name} must be at least {least}, got {value}")

"""Settings of elmore prepare."""

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
    """Replace them with U+FFFD, and report them."""


@dataclass(frozen=True, kw_only=True)
class PrepareSettings:
    """Everything a corpus depends on besides its text."""

    form: TextForm | None = None
    """By default, recognized by each file's name."""

    language: Language = Language.EN

    max_words: int = 800_000
    """Not counting the three markers of the vocabulary."""

    min_count: int = 3

    vocabulary: Path | None = None
    """A word list to use as is; then the two limits above do not apply."""

    extends: bool = False
    """Add words of the text to that list, within the two limits, as fine-tuning does."""

    heldout: float = 0.01
    """Fraction of documents to hold out; not used if held-out files are given."""

    document_sentences: int | None = None
    """Also end a document after this many sentences."""

    seed: int = 0
    """Determines which documents are held out."""

    bad_bytes: BadBytesPolicy = BadBytesPolicy.REFUSE

    chunk_bytes: int = 16 << 20
    """Size of the text of one shard. It changes the files, but not the sequence of symbols."""

    max_types: int = 20_000_000
    """Limit on distinct tokens while counting; each takes about 200 bytes of memory."""

    def __post_init__(self) -> None:
        """Convert strings to paths, and validate."""
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", Path(self.vocabulary))
        _check_at_least("max_words", self.max_words, 0)
        _check_at_least("min_count", self.min_count, 1)
        _check_at_least("max_types", self.max_types, 1)
        _check_at_least("seed", self.seed, 0)
        if self.document_sentences is not None:
            _check_at_least("document_sentences", self.document_sentences, 1)
        if self.extends and self.vocabulary is None:
            raise ConfigError("there is no vocabulary to extend; give one with --vocabulary")
        if not 0 <= self.heldout < 1:
            raise ConfigError(
                f"heldout must be a fraction of the documents, at least 0 and below 1, got "
                f"{self.heldout}"
            )
        if not 16 <= self.chunk_bytes <= 1 << 30:  # offsets in a shard are 32-bit numbers
            raise ConfigError(
                f"chunk_bytes must be between 16 and {1 << 30}, got {self.chunk_bytes}; 16 MB is a "
                "good size"
            )


def _check_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"{name} must be at least {least}, got {value}")

"""Settings of elmore prepare."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from elmore.errors import ConfigError
from elmore.settings import check_range, is_number, read_choice, read_path
from elmore.text.files import TextForm
from elmore.text.language import Language

_MOST = 1 << 62  # counts are 64-bit numbers


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
        """Accept choices and paths as strings, and refuse what is not possible."""
        if self.form is not None:
            object.__setattr__(self, "form", read_choice("form", self.form, TextForm))
        object.__setattr__(self, "language", read_choice("language", self.language, Language))
        object.__setattr__(
            self, "bad_bytes", read_choice("bad_bytes", self.bad_bytes, BadBytesPolicy)
        )
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", read_path("vocabulary", self.vocabulary))
        check_range("max_words", self.max_words, 0, _MOST)
        check_range("min_count", self.min_count, 1, _MOST)
        check_range("max_types", self.max_types, 1, _MOST)
        check_range("seed", self.seed, 0, _MOST)
        if self.document_sentences is not None:
            check_range("document_sentences", self.document_sentences, 1, _MOST)
        # Offsets inside a shard are 32-bit numbers.
        check_range("chunk_bytes", self.chunk_bytes, 16, 1 << 30)
        if not isinstance(self.extends, bool):
            raise ConfigError(f"extends is {self.extends!r:.60}; give True or False")
        if self.extends and self.vocabulary is None:
            raise ConfigError("there is no vocabulary to extend; give one with --vocabulary")
        if not is_number(self.heldout) or not 0 <= self.heldout < 1:
            raise ConfigError(
                f"heldout is {self.heldout!r:.60}; give a fraction of the documents, from 0 to "
                "below 1"
            )

"""Which characters a model can have learned from, as far as its files tell."""

from pathlib import Path

from elmore.errors import ElmoreError
from elmore.text.vocabulary import read_entries
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.hub import find_folder
from elmore.weights.loading import find_default
from elmore.weights.softmax_file import WORDS


def find_seen_characters(model: ElmoModel, source: str | Path | None) -> frozenset[str] | None:
    """Return the characters of its lists; None where it has none, as with bilm-tf weights.

    The lists are those of characters and words that it reads, and of words that it predicts. A
    model of bytes can spell any character, but those of other scripts mean nothing to it.
    """
    entries = [*model.characters, *model.words, *_read_softmax_words(source)]
    return frozenset("".join(entries)) if entries else None


def _read_softmax_words(source: str | Path | None) -> list[str]:
    try:
        folder = find_default() if source is None else find_folder(source)
        return read_entries(folder / WORDS) if (folder / WORDS).is_file() else []
    except (ElmoreError, OSError):  # no network, or a damaged list: then nothing is known of it
        return []

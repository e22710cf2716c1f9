"""Which characters a model may have seen in training, as far as its files show."""

from pathlib import Path

from elmore.errors import ElmoreError
from elmore.text.vocabulary import read_entries
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import find_default
from elmore.weights.model_folder import find_folder
from elmore.weights.softmax_file import WORDS


def find_seen_characters(model: ElmoModel, source: str | Path | None) -> frozenset[str] | None:
    """Return the characters in the model's lists; None if it has no lists, as in bilm-tf weights.

    The lists are its input characters, its input words and the words it predicts. A byte model can
    spell any character, but it knows nothing about scripts that it was not trained on.
    """
    entries = [*model.characters, *model.words, *_read_softmax_words(source)]
    return frozenset("".join(entries)) if entries else None


def _read_softmax_words(source: str | Path | None) -> list[str]:
    try:
        folder = find_default() if source is None else find_folder(source)
        return read_entries(folder / WORDS) if (folder / WORDS).is_file() else []
    except (ElmoreError, OSError):  # no network, or a damaged list
        return []

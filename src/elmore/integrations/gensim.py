"""Static vectors of elmore as gensim's KeyedVectors."""

from typing import Any

from elmore import require_extra, word_vectors

require_extra("gensim", needed_for="elmore.integrations.gensim")

from gensim.models import KeyedVectors  # noqa: E402


def make_keyed_vectors(words: Any = None, **how: Any) -> KeyedVectors:
    """Return the vectors of `elmore.word_vectors`, which has the same arguments."""
    table = word_vectors(words, **how)
    keyed = KeyedVectors(vector_size=table.vector_dim)
    keyed.add_vectors(list(table.words), table.vectors)
    return keyed

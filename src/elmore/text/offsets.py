"""Where the tokens of a sentence are in its text."""

from collections.abc import Iterable


def find_offsets(text: str, tokens: Iterable[str]) -> list[tuple[int, int]]:
    """Return the start and end of each token, so that `text[start:end]` is the token.

    The tokens must be those of `split_tokens`, which changes and loses no character.

    >>> find_offsets("Don't go.", ["Do", "n't", "go", "."])
    [(0, 2), (2, 5), (6, 8), (8, 9)]
    """
    offsets = []
    end = 0
    for token in tokens:
        start = text.index(token, end)
        end = start + len(token)
        offsets.append((start, end))
    return offsets

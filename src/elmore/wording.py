"""Numbers with nouns, for messages and reports."""


def count(number: int, noun: str, *, plural: str | None = None) -> str:
    """Return a number with its noun, in the singular or plural.

    >>> count(1, "seed"), count(1500, "seed"), count(2, "entry", plural="entries")
    ('1 seed', '1,500 seeds', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"

"""Numbers with their nouns, as messages and reports write them."""


def count(number: int, noun: str, *, plural: str | None = None) -> str:
    """Write a number and its noun, in the singular or the plural.

    >>> count(1, "seed"), count(1500, "seed"), count(2, "entry", plural="entries")
    ('1 seed', '1,500 seeds', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"

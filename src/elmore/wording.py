"""Format numbers and texts for messages and reports."""

import math


def count(number: int, noun: str, *, plural: str | None = None) -> str:
    """Format a number with its noun, in the singular or plural.

    >>> count(1, "seed"), count(1500, "seed"), count(2, "entry", plural="entries")
    ('1 seed', '1,500 seeds', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def shorten(text: str, *, max_chars: int = 40) -> str:
    """Cut a text that is too long for a message.

    >>> shorten("short"), shorten("a long sentence", max_chars=10)
    ('short', 'a long ...')
    """
    return text if len(text) <= max_chars else f"{text[: max_chars - 3]}..."


def format_perplexity(perplexity: float) -> str:
    """Format a perplexity with its significant digits.

    >>> format_perplexity(39.712), format_perplexity(793471.2)
    ('39.7', '793,471')
    """
    return f"{perplexity:,.1f}" if perplexity < 1000 else f"{perplexity:,.0f}"


def format_count(number: float) -> str:
    """Abbreviate a large number.

    >>> format_count(950), format_count(307_200), format_count(20_000_000), format_count(7.7e9)
    ('950', '307k', '20M', '7.7B')
    """
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def format_bytes(number: int) -> str:
    """Format a size in bytes with its unit.

    >>> format_bytes(950), format_bytes(37_123_456), format_bytes(1_200_000_000)
    ('950 bytes', '37.1 MB', '1.2 GB')
    """
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= 0.9995 * size:
            return f"{number / size:.3g} {unit}"
    return count(number, "byte")


def format_seconds(seconds: float) -> str:
    """Format a duration with its two largest units.

    >>> format_seconds(42.4), format_seconds(750), format_seconds(3723), format_seconds(200_000)
    ('42 s', '12 min 30 s', '1 h 2 min', '2 d 7 h')
    """
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    hours, days = minutes // 60, minutes // 1440
    return f"{hours} h {minutes % 60} min" if not days else f"{days} d {hours % 24} h"

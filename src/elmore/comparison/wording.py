"""Format numbers and names for the report."""

import unicodedata

MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"
"""Shown where there is no number."""

# Control characters, surrogates and unassigned code points are not allowed in XML.
_UNFIT = ("Cc", "Cs", "Cn")


def clean(name: str) -> str:
    r"""Return a name that is safe in one line of HTML, SVG or a terminal.

    >>> clean("two\nlines\x1b")
    'two lines\ufffd'
    """
    one_line = " ".join(name.split()) if not name.isprintable() else name
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _UNFIT else character
        for character in one_line
    )


def format_mean(mean: float, deviation: float | None, *, digits: int = 2) -> str:
    """Format a mean with its standard deviation, if there is one.

    >>> format_mean(84.125, 0.31), format_mean(84.125, None, digits=1)
    ('84.12 ± 0.31', '84.1')
    """
    text = format_number(mean, digits=digits)
    return text if deviation is None else f"{text} ± {deviation:.{digits}f}"


def format_number(number: float, *, digits: int = 2) -> str:
    """Format a number with a real minus sign, and without one before 0.

    >>> format_number(-1.5), format_number(-0.001)
    ('−1.50', '0.00')
    """
    text = f"{number:z.{digits}f}"
    return text.replace("-", MINUS)


def format_signed(number: float, *, digits: int = 2) -> str:
    """Format a difference.

    >>> format_signed(3.9), format_signed(-0.25)
    ('+3.90', '−0.25')
    """
    return f"{number:+z.{digits}f}".replace("-", MINUS)


def format_interval(interval: tuple[float, float] | None) -> str:
    """Format both ends; a dash for None.

    >>> format_interval((-0.5, 2.25)), format_interval(None)
    ('−0.50 to +2.25', '–')
    """
    return NOTHING if interval is None else " to ".join(format_signed(end) for end in interval)


def format_percent(share: float | None) -> str:
    """Format a fraction in percent; a dash for None.

    >>> format_percent(0.2), format_percent(0.005), format_percent(-0.034)
    ('20 %', '0.5 %', '−3.4 %')
    """
    if share is None:
        return NOTHING
    percent = 100 * share
    digits = 0 if abs(percent) >= 9.5 or percent == round(percent) else 1
    return f"{format_number(percent, digits=digits)} %"


def format_share(share: float) -> str:
    """Format a fraction of the training data.

    >>> format_share(1.0), format_share(0.1), format_share(0.005)
    ('100 %', '10 %', '0.5 %')
    """
    return f"{100 * share:.3g} %"


def format_seconds(seconds: float) -> str:
    """Format a duration.

    >>> format_seconds(42.4), format_seconds(750), format_seconds(7260)
    ('42 s', '12 min 30 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"

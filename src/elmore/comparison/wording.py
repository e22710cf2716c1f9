"""Format numbers and the names of variants for the report."""

import unicodedata
from dataclasses import dataclass

from elmore.comparison.results import WITHOUT

MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"
"""Shown where there is no number."""

# Control characters, surrogates and unassigned code points are not allowed in XML.
_UNFIT = ("Cc", "Cs", "Cn")

MAX_LABEL_CHARS = 20


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """Display names of a variant."""

    name: str
    """In tables."""
    label: str
    """In plots."""
    after_with: str
    """In sentences, after "with"."""
    learns_shares: bool = True
    """Whether the layer weights are learned."""


_KNOWN = {
    WITHOUT: Variant(
        name="without ELMo", label="without", after_with="no ELMo", learns_shares=False
    ),
    "input": Variant(name="ELMo at the input", label="input", after_with="ELMo at the input"),
    "output": Variant(name="ELMo at the output", label="output", after_with="ELMo at the output"),
    "both": Variant(
        name="ELMo at input and output",
        label="input + output",
        after_with="ELMo at the input and the output",
    ),
    "top": Variant(
        name="top layer only",
        label="top layer",
        after_with="the biLM's top layer",
        learns_shares=False,
    ),
    "average": Variant(
        name="average of layers",
        label="average of layers",
        after_with="the average of the biLM's layers",
        learns_shares=False,
    ),
    "finetuned": Variant(
        name="ELMo trained with the task",
        label="trained too",
        after_with="ELMo trained with the task",
    ),
    "domain": Variant(
        name="ELMo fine-tuned on the task's text",
        label="domain",
        after_with="ELMo fine-tuned on the task's text",
    ),
}


def describe(variant: str) -> Variant:
    """Return the display names of a variant."""
    if variant in _KNOWN:
        return _KNOWN[variant]
    name = clean(variant)
    is_long = len(name) > MAX_LABEL_CHARS
    label = f"{name[: MAX_LABEL_CHARS - 1]}…" if is_long else name
    return Variant(name=name, label=label, after_with=f"ELMo used as “{name}”")

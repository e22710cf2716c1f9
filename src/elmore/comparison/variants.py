"""How the variants of a comparison are called; one that is not known here keeps its own name."""

from dataclasses import dataclass

from elmore.comparison.results import WITHOUT
from elmore.comparison.wording import clean

MAX_LABEL_CHARS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """Words for a variant."""

    name: str
    """In a table."""
    label: str
    """In a plot."""
    after_with: str
    """In a sentence."""
    learns_shares: bool = True
    """Whether the layers' shares are learned."""


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
        name="top layer alone",
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
        name="ELMo that learns with the task",
        label="learns too",
        after_with="ELMo that learns with the task",
    ),
    "domain": Variant(
        name="ELMo that read the task's text first",
        label="domain",
        after_with="ELMo that read the task's text first",
    ),
}


def describe(variant: str) -> Variant:
    """Return the words for a variant."""
    if variant in _KNOWN:
        return _KNOWN[variant]
    name = clean(variant)
    is_long = len(name) > MAX_LABEL_CHARS
    label = f"{name[: MAX_LABEL_CHARS - 1]}…" if is_long else name
    return Variant(name=name, label=label, after_with=f"ELMo used as “{name}”")

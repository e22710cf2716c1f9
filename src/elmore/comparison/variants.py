"""Display names for the variants of a comparison; an unknown variant keeps its own name."""

from dataclasses import dataclass

from elmore.comparison.results import WITHOUT
from elmore.comparison.wording import clean

MAX_LABEL_CHARS = 20


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

"""Which tags may follow one another where tags mark spans, so that no half a span is predicted.

Shapes: K labels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from elmore.errors import DataError
from elmore.tasks.metrics.spans import OUTSIDE
from elmore.tasks.metrics.tag_schemes import TagScheme

# The rules take this number squared, in memory and for each token; tasks have some hundred labels.
MAX_LABELS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class TagRules:
    """True where a scheme allows it."""

    starts: Tensor  # (K,) bool, of a sentence
    follows: Tensor  # (K, K) bool, [before, after]
    ends: Tensor  # (K,) bool, of a sentence

    def as_scores(self) -> dict[str, Tensor]:
        """Return 0 where allowed and else -inf, as keyword arguments of `crf.decode_best`."""
        named = {"starts": self.starts, "transitions": self.follows, "ends": self.ends}
        return {
            name: torch.zeros(allowed.shape, device=allowed.device).masked_fill(
                ~allowed, -torch.inf
            )
            for name, allowed in named.items()
        }


@dataclass(frozen=True, slots=True)
class _Letters:
    """What the letters of a scheme do; those that do not go on with a span begin one."""

    all: str
    going_on: str  # stand only behind a tag of the same type whose span is not over
    unfinished: str  # after these, the span must go on
    over: str  # after these, it cannot


# IOB1 is not here: what its I does depends on the tag before. Write its spans in another scheme.
_LETTERS = {
    TagScheme.IOB2: _Letters("BI", going_on="I", unfinished="", over=""),
    TagScheme.BIOES: _Letters("BIES", going_on="IE", unfinished="BI", over="ES"),
    TagScheme.BILOU: _Letters("BILU", going_on="IL", unfinished="BI", over="LU"),
}


def allow_all(num_labels: int) -> TagRules:
    """Return the rules of tags that stand for themselves."""
    return TagRules(
        starts=torch.ones(num_labels, dtype=torch.bool),
        follows=torch.ones(num_labels, num_labels, dtype=torch.bool),
        ends=torch.ones(num_labels, dtype=torch.bool),
    )


def list_tags(types: Iterable[str], *, scheme: TagScheme) -> tuple[str, ...]:
    """Return every tag that a scheme may need for spans of these types, O first.

    >>> list_tags(["PER"], scheme=TagScheme.IOB2)
    ('O', 'B-PER', 'I-PER')
    """
    letters = _find_letters(scheme).all
    return (OUTSIDE, *(f"{letter}-{span_type}" for span_type in types for letter in letters))


def find_transitions(labels: Sequence[str], *, scheme: TagScheme) -> TagRules:
    """Tell which labels may stand first, side by side and last.

    >>> rules = find_transitions(["O", "B-PER", "I-PER"], scheme=TagScheme.IOB2)
    >>> rules.starts.tolist()
    [True, True, False]
    >>> rules.follows.tolist()[0]
    [True, True, False]
    """
    if len(labels) > MAX_LABELS:
        raise DataError(
            f"there are {len(labels):,} labels, and tags that mark spans may have {MAX_LABELS:,}; "
            "use fewer types of spans"
        )
    letters = _find_letters(scheme)
    tags = [_split(label, letters=letters, scheme=scheme) for label in labels]
    starts = [letter not in letters.going_on for letter, _ in tags]
    ends = [letter not in letters.unfinished for letter, _ in tags]
    follows = [[_may_follow(before, after, letters) for after in tags] for before in tags]
    return TagRules(
        starts=torch.tensor(starts, dtype=torch.bool),
        follows=torch.tensor(follows, dtype=torch.bool).reshape(len(tags), len(tags)),
        ends=torch.tensor(ends, dtype=torch.bool),
    )


def _find_letters(scheme: TagScheme) -> _Letters:
    if scheme not in _LETTERS:
        raise ValueError(f"wanted one of {', '.join(_LETTERS)}, got {scheme}")
    return _LETTERS[scheme]


def _may_follow(before: tuple[str, str], after: tuple[str, str], letters: _Letters) -> bool:
    if after[0] in letters.going_on:
        is_open = before[0] != OUTSIDE and before[0] not in letters.over
        return is_open and before[1] == after[1]
    return before[0] not in letters.unfinished


def _split(label: str, *, letters: _Letters, scheme: TagScheme) -> tuple[str, str]:
    """Return a label's letter and type, which may have hyphens itself: B-C-ARG1."""
    letter, _, span_type = label.partition("-")
    if label != OUTSIDE and not (len(letter) == 1 and letter in letters.all):
        raise DataError(
            f"{label!r} cannot be in the scheme {scheme}; wanted O, or one of "
            f"{', '.join(letters.all)} with a hyphen and a type, such as B-PER"
        )
    return letter, span_type

"""The tag transitions that a scheme allows, so that predicted tags are valid spans.

Shapes: K labels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from elmore.errors import DataError
from elmore.tasks.metrics.tag_schemes import OUTSIDE, TagScheme

# Memory, and time per token, grow with the square of this; tasks have a few hundred labels.
MAX_LABELS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class TagRules:
    """True where the scheme allows it."""

    starts: Tensor  # (K,) bool, at the start of a sentence
    follows: Tensor  # (K, K) bool, [before, after]
    ends: Tensor  # (K,) bool, at the end of a sentence

    def as_scores(self) -> dict[str, Tensor]:
        """Return 0 where allowed and -inf elsewhere, as keyword arguments of `crf.decode_best`."""
        named = {"starts": self.starts, "transitions": self.follows, "ends": self.ends}
        return {
            name: torch.zeros(allowed.shape, device=allowed.device).masked_fill(
                ~allowed, -torch.inf
            )
            for name, allowed in named.items()
        }


@dataclass(frozen=True, slots=True)
class _Letters:
    """The roles of a scheme's letters; those that do not continue a span begin one."""

    all: str
    continuing: str  # only after a tag of the same type whose span has not ended
    unfinished: str  # after these, the span must continue
    ending: str  # after these, it cannot


# Without IOB1, whose I may begin or continue a span; its spans are learned in another scheme.
_LETTERS = {
    TagScheme.IOB2: _Letters("BI", continuing="I", unfinished="", ending=""),
    TagScheme.BIOES: _Letters("BIES", continuing="IE", unfinished="BI", ending="ES"),
    TagScheme.BILOU: _Letters("BILU", continuing="IL", unfinished="BI", ending="LU"),
}


def allow_all(num_labels: int) -> TagRules:
    """Return rules that allow every transition."""
    return TagRules(
        starts=torch.ones(num_labels, dtype=torch.bool),
        follows=torch.ones(num_labels, num_labels, dtype=torch.bool),
        ends=torch.ones(num_labels, dtype=torch.bool),
    )


def list_tags(types: Iterable[str], *, scheme: TagScheme) -> tuple[str, ...]:
    """Return all tags of a scheme for spans of these types, O first.

    >>> list_tags(["PER"], scheme=TagScheme.IOB2)
    ('O', 'B-PER', 'I-PER')
    """
    letters = _find_letters(scheme).all
    return (OUTSIDE, *(f"{letter}-{span_type}" for span_type in types for letter in letters))


def find_transitions(labels: Sequence[str], *, scheme: TagScheme) -> TagRules:
    """Return which labels may be first, next to each other, and last.

    >>> rules = find_transitions(["O", "B-PER", "I-PER"], scheme=TagScheme.IOB2)
    >>> rules.starts.tolist()
    [True, True, False]
    >>> rules.follows.tolist()[0]
    [True, True, False]
    """
    if len(labels) > MAX_LABELS:
        raise DataError(
            f"there are {len(labels):,} span tags, but at most {MAX_LABELS:,} are allowed; use "
            "fewer types of spans"
        )
    letters = _find_letters(scheme)
    tags = [_split(label, letters=letters, scheme=scheme) for label in labels]
    starts = [letter not in letters.continuing for letter, _ in tags]
    ends = [letter not in letters.unfinished for letter, _ in tags]
    follows = [[_may_follow(before, after, letters) for after in tags] for before in tags]
    return TagRules(
        starts=torch.tensor(starts, dtype=torch.bool),
        follows=torch.tensor(follows, dtype=torch.bool).reshape(len(tags), len(tags)),
        ends=torch.tensor(ends, dtype=torch.bool),
    )


def _find_letters(scheme: TagScheme) -> _Letters:
    if scheme not in _LETTERS:
        raise ValueError(f"expected one of {', '.join(_LETTERS)}, got {scheme}")
    return _LETTERS[scheme]


def _may_follow(before: tuple[str, str], after: tuple[str, str], letters: _Letters) -> bool:
    if after[0] in letters.continuing:
        is_open = before[0] != OUTSIDE and before[0] not in letters.ending
        return is_open and before[1] == after[1]
    return before[0] not in letters.unfinished


def _split(label: str, *, letters: _Letters, scheme: TagScheme) -> tuple[str, str]:
    """Return the letter and type of a label; a type may contain hyphens: B-C-ARG1."""
    letter, _, span_type = label.partition("-")
    if label != OUTSIDE and not (len(letter) == 1 and letter in letters.all):
        raise DataError(
            f"the tag {label!r} is invalid in the scheme {scheme}; use O, or one of "
            f"{', '.join(letters.all)} with a hyphen and a type, such as B-PER"
        )
    return letter, span_type

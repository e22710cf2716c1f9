"""Trees with a label for every phrase: the Stanford Sentiment Treebank, one tree per line."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from elmore.errors import DataError
from elmore.tasks.data.lines import quote, read_lines, refuse_none

# From very negative to very positive.
SENTIMENT_LABELS = ("0", "1", "2", "3", "4")

# Only spaces and tabs separate: one token of the treebank contains a no-break space.
_PIECE = re.compile(r"[()]|[^ \t()]+")

# Trees escape brackets, but biLMs were trained on the characters themselves.
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_ESCAPE = re.compile(r"\\([/*])")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledSpan:
    """A phrase, tokens[start:end], and its label."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledTree:
    """A sentence and its phrases, from the whole sentence down."""

    tokens: tuple[str, ...]
    spans: tuple[LabeledSpan, ...]

    @property
    def label(self) -> str:
        """The label of the whole sentence."""
        return self.spans[0].label


def read_trees(
    path: Path, *, labels: Collection[str] | None = SENTIMENT_LABELS
) -> Iterator[LabeledTree]:
    """Read one tree per line, such as (3 (2 Very) (4 good)); `labels` are the allowed ones."""
    trees = (
        parse_tree(line, where=f"{path}, line {number}", labels=labels)
        for number, line in read_lines(path)
        if line.strip()
    )
    complaint = f"{path} has no trees; give a file with one tree per line"
    return refuse_none(trees, complaint=complaint)


def parse_tree(
    text: str, *, where: str, labels: Collection[str] | None = SENTIMENT_LABELS
) -> LabeledTree:
    """Read one tree; `where` is its position for error messages."""
    builder = _TreeBuilder(labels)
    try:
        for piece in _PIECE.findall(text):
            builder.add(piece)
        return builder.build()
    except ValueError as error:
        raise DataError(
            f"{where}: {error} in {quote(text)}, expected one tree per line, such as "
            "(3 (2 Very) (4 good)); fix the line"
        ) from None


@dataclass(kw_only=True, slots=True)
class _Phrase:
    index: int  # in the list of spans
    label: str
    start: int
    has_token: bool = False


class _TreeBuilder:
    """Builds a tree piece by piece, without recursion; a ValueError says what is wrong."""

    def __init__(self, labels: Collection[str] | None) -> None:
        self.labels = labels
        self.tokens: list[str] = []
        self.spans: list[LabeledSpan | None] = []  # None until the phrase ends
        self.open: list[_Phrase] = []
        self.needs_label = False

    def add(self, piece: str) -> None:
        if self.needs_label:
            self._begin(piece)
        elif piece == "(":
            if self.open and self.open[-1].has_token:
                raise ValueError(f"a phrase begins next to the token {self.tokens[-1]!r}")
            if self.spans and not self.open:
                raise ValueError("a second tree begins")
            self.needs_label = True
        elif not self.open:
            raise ValueError(f"{piece!r} is outside all brackets")
        elif piece == ")":
            self._end()
        else:
            self._add_token(piece)

    def build(self) -> LabeledTree:
        if self.open or self.needs_label:
            raise ValueError(f"{len(self.open) + self.needs_label} of the brackets do not close")
        spans = tuple(span for span in self.spans if span is not None)
        return LabeledTree(tokens=tuple(self.tokens), spans=spans)

    def _begin(self, label: str) -> None:
        if label in "()":
            raise ValueError(f"a bracket is followed by {label!r} instead of a label")
        if self.labels is not None and label not in self.labels:
            raise ValueError(f"the label {label!r} is not one of {', '.join(self.labels)}")
        self.open.append(_Phrase(index=len(self.spans), label=label, start=len(self.tokens)))
        self.spans.append(None)
        self.needs_label = False

    def _end(self) -> None:
        phrase = self.open.pop()
        if phrase.start == len(self.tokens):
            raise ValueError(f"a phrase labeled {phrase.label!r} has no token")
        self.spans[phrase.index] = LabeledSpan(
            start=phrase.start, end=len(self.tokens), label=phrase.label
        )

    def _add_token(self, token: str) -> None:
        if self.open[-1].start != len(self.tokens):
            raise ValueError(f"the token {token!r} has no label of its own")
        self.open[-1].has_token = True
        self.tokens.append(_restore(token))


def _restore(token: str) -> str:
    r"""Undo the escapes of a token in a tree.

    >>> _restore("-LRB-"), _restore(r"and\/or")
    ('(', 'and/or')
    """
    return _BRACKETS.get(token) or _ESCAPE.sub(r"\1", token)

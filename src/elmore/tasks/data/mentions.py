"""Mentions in CoNLL-2012 brackets: (12 begins a mention of cluster 12, 12) ends it."""

import re
from collections import defaultdict

from elmore.errors import DataError

Span = tuple[int, int]  # tokens[start:end]
Clusters = tuple[tuple[Span, ...], ...]

NO_BRACKETS = frozenset(["", "-", "_", "*"])

_BRACKET = re.compile(r"\([0-9]+\)?|[0-9]+\)")


class MentionReader:
    """Reads the brackets of a document token by token."""

    def __init__(self) -> None:
        self._num_tokens = 0
        self._open: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._clusters: defaultdict[str, set[Span]] = defaultdict(set)

    @property
    def clusters(self) -> Clusters:
        """The mentions of each cluster in text order, the earliest cluster first."""
        return tuple(sorted(tuple(sorted(spans)) for spans in self._clusters.values()))

    def read(self, cell: str, *, where: str) -> None:
        """Read the next token's brackets, if any: "(1(2)", possibly with | between them."""
        position = self._num_tokens
        self._num_tokens += 1
        if cell in NO_BRACKETS:
            return
        brackets = _BRACKET.findall(cell)
        if "".join(brackets) != cell.replace("|", ""):
            raise DataError(
                f"{where}: expected brackets of mentions, such as (12, 12), (12) or several "
                f"separated by |, got {cell!r}; fix the line"
            )
        for bracket in brackets:
            name = bracket.strip("()")
            if bracket[0] == "(":
                self._open[name].append((position, where))
            if bracket[-1] == ")":
                self._close(name, cell=cell, where=where)

    def end_sentence(self) -> None:
        """Raise an error if a mention is still open at the end of its sentence."""
        unclosed = [(*opened, name) for name, starts in self._open.items() for opened in starts]
        if unclosed:
            _, where, name = min(unclosed)
            raise DataError(
                f"{where}: the mention ({name} does not end in its sentence; put {name}) where it "
                "ends"
            )

    def _close(self, name: str, *, cell: str, where: str) -> None:
        if not self._open[name]:
            raise DataError(
                f"{where}: {cell!r} ends a mention of cluster {name} that has not begun in this "
                f"sentence; put ({name} where it begins"
            )
        # If mentions of one cluster are nested, the inner one ends first.
        start, _ = self._open[name].pop()
        span = (start, self._num_tokens)
        if span in self._clusters[name]:
            raise DataError(
                f"{where}: {cell!r} ends the same mention of cluster {name} twice; leave one out"
            )
        self._clusters[name].add(span)

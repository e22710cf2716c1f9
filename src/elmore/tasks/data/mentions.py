"""Mentions in brackets, as CoNLL-2012 writes them: (12 begins one of cluster 12, 12) ends it."""

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
        """The mentions of each cluster in the order of the text; the earliest cluster first."""
        return tuple(sorted(tuple(sorted(spans)) for spans in self._clusters.values()))

    def read(self, cell: str, *, where: str) -> None:
        """Take the next token's brackets: "(1(2)", or with | between them, or none."""
        place = self._num_tokens
        self._num_tokens += 1
        if cell in NO_BRACKETS:
            return
        brackets = _BRACKET.findall(cell)
        if "".join(brackets) != cell.replace("|", ""):
            raise DataError(
                f"{where}: {cell!r} is not what mentions are marked with; wanted (12, 12), (12) or "
                "several of them with | between: mend the line"
            )
        for bracket in brackets:
            name = bracket.strip("()")
            if bracket[0] == "(":
                self._open[name].append((place, where))
            if bracket[-1] == ")":
                self._close(name, cell=cell, where=where)

    def end_sentence(self) -> None:
        """Refuse a mention that would go on in the next sentence."""
        unclosed = [(*opened, name) for name, places in self._open.items() for opened in places]
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
        # Of mentions of one cluster inside each other, the inner one ends first.
        start, _ = self._open[name].pop()
        span = (start, self._num_tokens)
        if span in self._clusters[name]:
            raise DataError(
                f"{where}: {cell!r} ends the same mention of cluster {name} twice; leave one out"
            )
        self._clusters[name].add(span)

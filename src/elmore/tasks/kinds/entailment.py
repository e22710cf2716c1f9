"""Pairs of texts with a label each, by ESIM: whether one entails the other, and users' own."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from elmore.errors import DataError
from elmore.tasks.data.lines import read_lines, refuse_none, shorten
from elmore.tasks.data.pairs import (
    HYPOTHESIS_NAMES,
    INFERENCE_LABELS,
    PREMISE_NAMES,
    read_pairs,
)
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds import classes
from elmore.tasks.kinds.classes import ClassExample, TextSettings, split_texts
from elmore.tasks.networks.esim import ESIM
from elmore.tasks.networks.label_choice import Probabilities
from elmore.tasks.task import Labels

# What the first line of a table without labels may be, if it is not a pair itself.
_HEADERS = [list(names) for names in zip(PREMISE_NAMES, HYPOTHESIS_NAMES, strict=True)]


class PairTask:
    """Which of a user's labels a pair has; the order of its texts matters."""

    name = "pairs"
    main_score = "accuracy"
    known_labels: Labels | None = None
    """All there may be; None for any."""

    def __init__(self, settings: TextSettings | None = None) -> None:
        self.settings = settings or TextSettings()

    count_tokens = staticmethod(classes.count_tokens)
    find_sentences = staticmethod(classes.find_sentences)
    prepare = staticmethod(classes.prepare)
    score = staticmethod(classes.score)

    def read(self, path: Path) -> Iterator[ClassExample]:
        """Yield the pairs of a table; those labelled '-' are left out."""
        for row in read_pairs(path, labels=self.known_labels):
            yield self._split(row.premise, row.hypothesis, label=row.label)

    read_training = read

    def read_unlabelled(self, path: Path) -> Iterator[ClassExample]:
        """Yield the pairs of a table of two columns, or of one as `read` takes it."""
        for texts in read_bare_pairs(path):
            yield self._split(*texts, label=None)

    def find_labels(self, examples: Iterable[ClassExample]) -> Labels:
        """Return the labels that occur: in the order in which they are known, or the alphabet's."""
        found = classes.find_labels(examples)
        return tuple(label for label in self.known_labels or found if label in found)

    def build(self, tokens: TokenInput, *, labels: Labels) -> ESIM:
        """Return an untrained network."""
        return ESIM(
            tokens=tokens,
            labels=labels,
            hidden_dim=self.settings.hidden_dim,
            dropout=self.settings.dropout,
        )

    def to_json(self, example: ClassExample, prediction: Probabilities) -> dict[str, Any]:
        """Return the pair as it was written, and its label."""
        return _show_pair(example, prediction)

    def _split(self, *texts: str, label: str | None) -> ClassExample:
        return split_texts(
            *texts,
            label=label,
            language=self.settings.language,
            max_tokens=self.settings.max_tokens,
        )


class EntailmentTask(PairTask):
    """Whether a premise entails a hypothesis, contradicts it, or neither (SNLI).

    The paper's hidden_dim is 300, its dropout 0.5.
    """

    name = "entailment"
    known_labels = INFERENCE_LABELS


def read_bare_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield two texts a line; how many columns the first line has says what the table is."""
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    if first.count("\t") == 1:
        complaint = f"{path} has no pairs; give two texts a line, with a tab between them"
        return refuse_none(_read_two_columns(path), complaint=complaint)
    return ((row.premise, row.hypothesis) for row in read_pairs(path))


def _read_two_columns(path: Path) -> Iterator[tuple[str, str]]:
    is_first = True
    for number, line in read_lines(path):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 2 or not all(cells):
            raise DataError(
                f"{path}, line {number}: wanted two texts with a tab between them, as in the first "
                f"line, got {shorten(line)}; mend the line"
            )
        if not is_first or [cell.lower() for cell in cells] not in _HEADERS:
            yield cells[0], cells[1]
        is_first = False


def _show_pair(example: ClassExample, prediction: Probabilities) -> dict[str, Any]:
    premise, hypothesis = example.texts
    return {"premise": premise, "hypothesis": hypothesis, **classes.show(prediction)}

"""Classify pairs of texts with ESIM: entailment, and users' own labeled pairs."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.pairs import INFERENCE_LABELS, read_bare_pairs, read_pairs
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.classes import ClassExample, ClassTask, show
from elmore.tasks.kinds.plain_inputs import is_list, is_text, refuse_input
from elmore.tasks.networks.esim import ESIM
from elmore.tasks.networks.label_choice import Probabilities
from elmore.tasks.task import Labels

EXPECTED = "a table: two texts and their label per line, separated by tabs"


class PairTask(ClassTask):
    """Predicts which of the user's labels a pair has; the order of its texts matters."""

    name = "pairs"
    known_labels: Labels | None = None
    """The allowed labels; None for any."""

    @reads(FileForm.TABLE, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[ClassExample]:
        """Yield the pairs of a table; those with the label '-' are skipped."""
        for row in read_pairs(path, labels=self.known_labels):
            yield self.split(row.premise, row.hypothesis, label=row.label)

    @reads(FileForm.TABLE, expected=EXPECTED)
    def read_unlabeled(self, path: Path) -> Iterator[ClassExample]:
        """Yield the pairs of a table with or without labels, which are ignored."""
        for texts in read_bare_pairs(path):
            yield self.split(*texts)

    def parse(self, given: Any) -> ClassExample:
        """Return an example from a pair of strings, or an example unchanged."""
        if isinstance(given, ClassExample) and len(given.texts) == 2:
            return given
        if not (is_list(given) and len(given) == 2 and all(map(is_text, given))):
            expected = "a pair of texts, such as ('A man sleeps.', 'Nobody is awake.')"
            raise refuse_input(given, task=self.name, expected=expected)
        return self.split(*given)

    def find_labels(self, examples: Iterable[ClassExample]) -> Labels:
        """Return the labels that occur, in the order of `known_labels` or alphabetically."""
        found = super().find_labels(examples)
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
        """Return the original pair, its label and all probabilities."""
        premise, hypothesis = example.texts
        return {"premise": premise, "hypothesis": hypothesis, **show(prediction)}


class EntailmentTask(PairTask):
    """Predicts whether a premise entails a hypothesis, contradicts it, or neither (SNLI).

    The paper uses hidden_dim 300 and dropout 0.5.
    """

    name = "entailment"
    known_labels = INFERENCE_LABELS

"""Classify pairs of texts with ESIM: entailment, and users' own labeled pairs."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.pairs import INFERENCE_LABELS, read_bare_pairs, read_pairs
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds import classes
from elmore.tasks.kinds.classes import ClassExample, TextSettings, split_texts
from elmore.tasks.networks.esim import ESIM
from elmore.tasks.networks.label_choice import Probabilities
from elmore.tasks.task import Labels

EXPECTED = "a table: two texts and their label per line, separated by tabs"


class PairTask:
    """Predicts which of the user's labels a pair has; the order of its texts matters."""

    name = "pairs"
    main_score = "accuracy"
    known_labels: Labels | None = None
    """The allowed labels; None for any."""

    def __init__(self, settings: TextSettings | None = None) -> None:
        self.settings = settings or TextSettings()

    count_tokens = staticmethod(classes.count_tokens)
    find_sentences = staticmethod(classes.find_sentences)
    prepare = staticmethod(classes.prepare)
    list_labels = staticmethod(classes.list_labels)
    locate = staticmethod(classes.locate)
    score = staticmethod(classes.score)
    score_constant = staticmethod(classes.score_constant)

    @reads(FileForm.TABLE, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[ClassExample]:
        """Yield the pairs of a table; those with the label '-' are skipped."""
        for row in read_pairs(path, labels=self.known_labels):
            yield self._split(row.premise, row.hypothesis, label=row.label)

    read_training = read

    @reads(FileForm.TABLE, expected=EXPECTED)
    def read_unlabelled(self, path: Path) -> Iterator[ClassExample]:
        """Yield the pairs of a table with or without labels, which are ignored."""
        for texts in read_bare_pairs(path):
            yield self._split(*texts, label=None)

    def parse(self, given: Any) -> ClassExample:
        """Return an example from a pair of strings, or an example unchanged."""
        return classes.parse_pair(given, task=self.name, split=partial(self._split, label=None))

    def find_labels(self, examples: Iterable[ClassExample]) -> Labels:
        """Return the labels that occur, in the order of `known_labels` or alphabetically."""
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
        """Return the original pair and its label."""
        return _show_pair(example, prediction)

    def _split(self, *texts: str, label: str | None) -> ClassExample:
        return split_texts(
            *texts,
            label=label,
            language=self.settings.language,
            max_tokens=self.settings.max_tokens,
        )


class EntailmentTask(PairTask):
    """Predicts whether a premise entails a hypothesis, contradicts it, or neither (SNLI).

    The paper uses hidden_dim 300 and dropout 0.5.
    """

    name = "entailment"
    known_labels = INFERENCE_LABELS


def _show_pair(example: ClassExample, prediction: Probabilities) -> dict[str, Any]:
    premise, hypothesis = example.texts
    return {"premise": premise, "hypothesis": hypothesis, **classes.show(prediction)}

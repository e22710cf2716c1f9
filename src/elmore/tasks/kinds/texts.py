"""Classify a user's own labeled texts with the biattentive classification network."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.lines import read_lines, refuse_none
from elmore.tasks.data.pairs import read_bare_texts, read_texts
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds import classes
from elmore.tasks.kinds.classes import ClassExample, TextSettings, split_texts
from elmore.tasks.networks.biattentive import BiattentiveClassifier
from elmore.tasks.networks.label_choice import Probabilities
from elmore.tasks.task import Labels

EXPECTED = "a table: one text per line, a tab, and its label"


class TextTask:
    """Predicts which of the user's labels a text has."""

    name = "texts"
    main_score = "accuracy"

    def __init__(self, settings: TextSettings | None = None) -> None:
        self.settings = settings or TextSettings()

    count_tokens = staticmethod(classes.count_tokens)
    find_sentences = staticmethod(classes.find_sentences)
    find_labels = staticmethod(classes.find_labels)
    prepare = staticmethod(classes.prepare)
    list_labels = staticmethod(classes.list_labels)
    locate = staticmethod(classes.locate)
    score = staticmethod(classes.score)
    score_constant = staticmethod(classes.score_constant)

    @reads(FileForm.TABLE, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[ClassExample]:
        """Yield the texts of a table with one text and its label per line."""
        for row in read_texts(path):
            yield self._split(row.text, label=row.label)

    read_training = read

    @reads(FileForm.TABLE, expected=f"a text per line, or {EXPECTED}", takes_text=True)
    def read_unlabelled(self, path: Path) -> Iterator[ClassExample]:
        """Yield one text per line, or the texts of a table if the first line has tabs."""
        for text in read_plain_or_table(path):
            yield self._split(text, label=None)

    def parse(self, given: Any) -> ClassExample:
        """Return an example from a string, or an example unchanged."""
        return classes.parse_text(given, task=self.name, split=partial(self._split, label=None))

    def build(self, tokens: TokenInput, *, labels: Labels) -> BiattentiveClassifier:
        """Return an untrained network."""
        return BiattentiveClassifier(
            tokens=tokens,
            labels=labels,
            hidden_dim=self.settings.hidden_dim,
            dropout=self.settings.dropout,
        )

    def to_json(self, example: ClassExample, prediction: Probabilities) -> dict[str, Any]:
        """Return the original text and its label."""
        return {"text": example.texts[0], **classes.show(prediction)}

    def _split(self, text: str, *, label: str | None) -> ClassExample:
        return split_texts(
            text,
            label=label,
            language=self.settings.language,
            max_tokens=self.settings.max_tokens,
        )


def read_plain_or_table(path: Path) -> Iterator[str]:
    """Yield each line that is not blank, or the texts of a table, ignoring labels."""
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    if "\t" in first:
        return read_bare_texts(path)
    lines = (line.strip() for _, line in read_lines(path) if line.strip())
    return refuse_none(lines, complaint=f"{path} has no texts; give one text per line")

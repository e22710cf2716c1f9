"""Classify a user's own labeled texts with the biattentive classification network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.lines import read_lines, refuse_none
from elmore.tasks.data.pairs import read_bare_texts, read_texts
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.classes import ClassExample, ClassTask, show
from elmore.tasks.kinds.plain_inputs import is_text, refuse_input
from elmore.tasks.networks.biattentive import BiattentiveClassifier
from elmore.tasks.networks.label_choice import Probabilities
from elmore.tasks.task import Labels

EXPECTED = "a table: one text per line, a tab, and its label"


class TextTask(ClassTask):
    """Predicts which of the user's labels a text has."""

    name = "texts"

    @reads(FileForm.TABLE, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[ClassExample]:
        """Yield the texts of a table with one text and its label per line."""
        for row in read_texts(path):
            yield self.split(row.text, label=row.label)

    @reads(FileForm.TABLE, expected=f"a text per line, or {EXPECTED}", takes_text=True)
    def read_unlabeled(self, path: Path) -> Iterator[ClassExample]:
        """Yield one text per line, or the texts of a table if the first line has tabs."""
        for text in read_plain_or_table(path):
            yield self.split(text)

    def parse(self, given: Any) -> ClassExample:
        """Return an example from a string, or an example unchanged."""
        if isinstance(given, ClassExample) and len(given.texts) == 1:
            return given
        if not is_text(given):
            expected = "a text: a string that is not blank"
            raise refuse_input(given, task=self.name, expected=expected)
        return self.split(given)

    def build(self, tokens: TokenInput, *, labels: Labels) -> BiattentiveClassifier:
        """Return an untrained network."""
        return BiattentiveClassifier(
            tokens=tokens,
            labels=labels,
            hidden_dim=self.settings.hidden_dim,
            dropout=self.settings.dropout,
        )

    def to_json(self, example: ClassExample, prediction: Probabilities) -> dict[str, Any]:
        """Return the text (for trees, the joined tokens), its label and all probabilities."""
        return {"text": example.texts[0], **show(prediction)}


def read_plain_or_table(path: Path) -> Iterator[str]:
    """Yield each line that is not blank, or the texts of a table, ignoring labels."""
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    if "\t" in first:
        return read_bare_texts(path)
    lines = (line.strip() for _, line in read_lines(path) if line.strip())
    return refuse_none(lines, complaint=f"{path} has no texts; give one text per line")

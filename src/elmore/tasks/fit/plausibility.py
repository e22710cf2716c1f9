"""Data that can be read but was probably not meant: swapped columns, typos, lost blank lines.

Training on it would take hours and end with a bad score and no error. None of the thresholds is
reached by CoNLL-2003, SST, SNLI, English and Chinese UD, PropBank on EWT, OntoGUM, LitBank, SQuAD
or Weibo NER (tests/tasks/fit/test_plausibility.py reads those that are installed).
"""

from collections.abc import Callable, Iterator
from itertools import chain

from elmore.errors import DataError
from elmore.tasks.data.lines import quote
from elmore.tasks.fit.data import TaskData, find_sentences
from elmore.tasks.fit.data_summary import DataSummary, summarize_data
from elmore.tasks.fit.label_plausibility import find_wrong_labels
from elmore.tasks.fit.text_plausibility import (
    find_joined_sentences,
    find_other_scripts,
    find_unsegmented,
)
from elmore.tasks.task import Labels, Task

# Tasks whose examples are one sentence each, and those that choose one label for an example.
SENTENCE_TASKS = ("entities", "tags", "roles")
CHOICE_TASKS = ("sentiment", "entailment", "texts", "pairs")

# With the texts in the label's column, nearly every example has a label of its own. Even few-shot
# data has two examples of a label; fewer than this many labels may be a toy.
MIN_EXAMPLES_PER_LABEL, MIN_SUSPECT_LABELS = 2.0, 20
# With tags and tokens swapped, there are more tags than words; rich tag sets have some thousand
# tags, but for far more words.
MIN_SUSPECT_TAGS = 50
# Columns read as a table of texts: a "text" is one token.
MIN_SHORT_TEXTS, MAX_SHORT_SHARE = 100, 0.95


class ImplausibleDataError(DataError):
    """Data that can be read but looks wrong; `findings` has a sentence for each reason."""

    def __init__(self, findings: list[str]) -> None:
        self.findings = findings
        remedy = "fix it, or train on it as it is with --accept (in Python: accept=True)"
        if len(findings) == 1:
            super().__init__(f"the data looks wrong: {findings[0]}; {remedy}")
        else:
            listed = "".join(f"\n  {finding}" for finding in findings)
            super().__init__(f"the data looks wrong; {remedy}:{listed}")


def check_data(
    task: Task,
    data: TaskData,
    *,
    labels: Labels | None = None,
    seen_characters: frozenset[str] | None = None,
    accept: bool = False,
    on_message: Callable[[str], None] = lambda _text: None,
) -> None:
    """Show what was read; refuse what looks wrong, or with `accept` show that too.

    `labels` are those of the training data, if the task has already found them. `seen_characters`
    are those in the training data of the biLM, if they are known.
    """
    summary = summarize_data(task, data, labels=labels)
    on_message(summary.describe())
    findings = list(find_implausible(task, data, summary, seen_characters=seen_characters))
    if findings and not accept:
        raise ImplausibleDataError(findings)
    for finding in findings:
        on_message(f"accepted: {finding}")


def find_implausible(
    task: Task, data: TaskData, summary: DataSummary, *, seen_characters: frozenset[str] | None
) -> Iterator[str]:
    """Yield a sentence for each thing that looks wrong."""
    swapped = list(_find_swapped_columns(task, data, summary))
    # Swapped labels and unsegmented Chinese are short texts, too.
    yield from swapped or list(find_unsegmented(task, data)) or _find_short_texts(task, data)
    yield from find_wrong_labels(task, data, summary)
    if task.name in SENTENCE_TASKS:
        yield from find_joined_sentences(task, data)
    yield from find_other_scripts(task, data, seen_characters=seen_characters)


def _find_swapped_columns(task: Task, data: TaskData, summary: DataSummary) -> Iterator[str]:
    train = summary.parts["train"]
    num_labels = len(train.labels)
    if task.name in CHOICE_TASKS and num_labels >= MIN_SUSPECT_LABELS:
        if train.num_examples < MIN_EXAMPLES_PER_LABEL * num_labels:
            example = quote(max(train.labels, key=len))
            yield (
                f"the {train.num_examples:,} training examples have {num_labels:,} different "
                f"labels, such as {example}, so the label is probably in another column (name the "
                "columns in a first line)"
            )
    elif task.name == "tags" and num_labels >= MIN_SUSPECT_TAGS:
        num_types = len(set(chain.from_iterable(find_sentences(task, data.train))))
        if num_labels > num_types:
            yield (
                f"training has {num_labels:,} different tags for {num_types:,} different tokens, "
                "so tokens and tags are probably swapped (the token is column 1)"
            )


def _find_short_texts(task: Task, data: TaskData) -> Iterator[str]:
    if task.name != "texts" or len(data.train) < MIN_SHORT_TEXTS:
        return
    num_short = int((data.train.lengths == 1).sum())
    if num_short > MAX_SHORT_SHARE * len(data.train):
        yield (
            f"{num_short:,} of {len(data.train):,} training texts are a single token, so the file "
            "is probably columns of tokens and tags (which entities and tags read)"
        )

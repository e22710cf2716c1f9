"""A summary of a task's data: numbers of examples, tokens and labels, and the tag scheme."""

import warnings
from collections import Counter
from dataclasses import dataclass

from elmore.errors import DataError, DataWarning
from elmore.tasks.fit.data import Store, TaskData
from elmore.tasks.metrics.tag_schemes import TagScheme
from elmore.tasks.task import Labels, Task
from elmore.wording import count, shorten

# The most frequent labels are shown; a treebank may have hundreds.
LABELS_SHOWN = 12
_LABEL_CHARS = 30


@dataclass(frozen=True, kw_only=True)
class PartSummary:
    """The size and labels of one part of the data."""

    num_examples: int
    num_tokens: int
    labels: Counter[str]


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """The summaries of all parts."""

    parts: dict[str, PartSummary]
    scheme: TagScheme | None
    """The tag scheme of the training data; None if it has no spans, or the scheme is unclear."""

    def describe(self) -> str:
        """Return one line with sizes, and one with the training labels if there are any."""
        lines = "; ".join(
            f"{name}: {count(part.num_examples, 'example')}, {count(part.num_tokens, 'token')}"
            for name, part in self.parts.items()
        )
        labels = self.parts["train"].labels
        if not labels:
            return lines
        shown = ", ".join(
            f"{shorten(label, max_chars=_LABEL_CHARS)} {number:,}"
            for label, number in labels.most_common(LABELS_SHOWN)
        )
        num_hidden = len(labels) - LABELS_SHOWN
        more = f", and {num_hidden:,} more" if num_hidden > 0 else ""
        scheme = f"; tag scheme: {self.scheme}" if self.scheme else ""
        return f"{lines}\n{count(len(labels), 'training label')}: {shown}{more}{scheme}"


def summarize_data(task: Task, data: TaskData, *, labels: Labels | None = None) -> DataSummary:
    """Count examples, tokens and labels of all parts.

    `labels` are those that the task found in the training data, if it has already done so.
    """
    labels = _find_labels(task, data.train) if labels is None else labels
    return DataSummary(
        parts={name: _summarize_part(task, store) for name, store in data.parts.items()},
        scheme=TagScheme(labels[0]) if labels and labels[0] in list(TagScheme) else None,
    )


def _summarize_part(task: Task, examples: Store) -> PartSummary:
    return PartSummary(
        num_examples=len(examples),
        num_tokens=int(examples.lengths.sum(dtype="int64")),
        labels=Counter(label for example in examples for label in task.list_labels(example)),
    )


def _find_labels(task: Task, examples: Store) -> Labels:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # training gives the same warnings
        try:
            return task.find_labels(iter(examples))
        except DataError:  # training raises it too
            return ()

"""The examples of a task, read once and stored on disk."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from elmore.files.example_store import ExampleStore
from elmore.tasks.data.lines import refuse_none
from elmore.tasks.data.parts import Files, Parts
from elmore.tasks.task import Task

Store = ExampleStore[Any]


@dataclass(frozen=True, kw_only=True)
class TaskData:
    """The examples of each part: training, early stopping, and a final score."""

    train: Store
    dev: Store
    test: Store | None

    @property
    def parts(self) -> dict[str, Store]:
        """The parts that exist, by name."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: store for name, store in named.items() if store is not None}


def read_data(
    task: Task, parts: Parts, *, on_stage: Callable[[str], None] = lambda _text: None
) -> TaskData:
    """Read all files of a task, so that errors in any of them are raised before training starts."""
    on_stage("reading the data")
    return TaskData(
        train=read_files(task, task.read_training, parts.train),
        dev=read_files(task, task.read, parts.dev),
        test=read_files(task, task.read, parts.test) if parts.test else None,
    )


def read_files(task: Task, read: Callable[[Path], Iterator[Any]], files: Files) -> Store:
    """Read the files of a part; one file may yield no examples, but not all of them."""
    examples = chain.from_iterable(map(read, files))
    complaint = (
        f"{files[0]}{' and the other files' if len(files) > 1 else ''}: no examples are left with "
        f"these settings of the task {task.name}; change them (--set, in Python changes=), or "
        "give other files"
    )
    return ExampleStore(refuse_none(examples, complaint=complaint), count_tokens=task.count_tokens)


def find_sentences(task: Task, examples: Iterable[Any]) -> Iterator[Sequence[str]]:
    """Yield the sentences of examples, in all their roles."""
    for example in examples:
        yield from chain.from_iterable(task.find_sentences([example]))

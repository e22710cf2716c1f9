"""The examples of a task, read once and kept on disk."""

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
    """Examples to learn from, to choose weights by, and to be scored on."""

    train: Store
    dev: Store
    test: Store | None

    @property
    def parts(self) -> dict[str, Store]:
        """What there is, by name."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: store for name, store in named.items() if store is not None}


def read_data(
    task: Task, parts: Parts, *, on_stage: Callable[[str], None] = lambda _text: None
) -> TaskData:
    """Read all files of a task; what is wrong with any of them is known before training begins."""
    on_stage("reading the data")
    return TaskData(
        train=read_files(task, task.read_training, parts.train),
        dev=read_files(task, task.read, parts.dev),
        test=read_files(task, task.read, parts.test) if parts.test else None,
    )


def read_files(task: Task, read: Callable[[Path], Iterator[Any]], files: Files) -> Store:
    """Read files one after another; each may leave all its examples out, but not all files."""
    examples = chain.from_iterable(map(read, files))
    complaint = (
        f"{files[0]}{' and the others' if len(files) > 1 else ''}: the settings of the task "
        f"{task.name} leave no example; change them (--set), or give other files"
    )
    return ExampleStore(refuse_none(examples, complaint=complaint), count_tokens=task.count_tokens)


def find_sentences(task: Task, examples: Iterable[Any]) -> Iterator[Sequence[str]]:
    """Yield the sentences of examples, of all their roles."""
    for example in examples:
        yield from chain.from_iterable(task.find_sentences([example]))

"""The examples of a task, read once and kept on disk."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from elmore.tasks.data.example_store import ExampleStore
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
        train=read_files(task, parts.train),
        dev=read_files(task, parts.dev),
        test=read_files(task, parts.test) if parts.test else None,
    )


def read_files(task: Task, files: Files) -> Store:
    """Read files one after another."""
    examples = chain.from_iterable(map(task.read, files))
    return ExampleStore(examples, count_tokens=task.count_tokens)


def find_sentences(task: Task, examples: Iterable[Any]) -> Iterator[Sequence[str]]:
    """Yield the sentences of examples, of all their roles."""
    for example in examples:
        yield from chain.from_iterable(task.find_sentences([example]))

"""The table of all tasks.

To add a task, write its class (see `tasks/task.py`), and add it here and to `names.py`.
Each line names the class of the task and the class of its settings. Training settings of the task
are in `configs/tasks/NAME.toml`; a test checks that every task has such a file.
"""

from dataclasses import dataclass

from elmore.errors import ConfigError
from elmore.tasks.kinds.classes import TextSettings
from elmore.tasks.kinds.coreference import CoreferenceSettings, CoreferenceTask
from elmore.tasks.kinds.entailment import EntailmentTask, PairTask
from elmore.tasks.kinds.entities import EntitySettings, EntityTask
from elmore.tasks.kinds.names import OTHER_NAMES, list_names
from elmore.tasks.kinds.questions import QuestionSettings, QuestionTask
from elmore.tasks.kinds.roles import RoleSettings, RoleTask
from elmore.tasks.kinds.sentiment import SentimentSettings, SentimentTask
from elmore.tasks.kinds.tags import TagSettings, TagTask
from elmore.tasks.kinds.texts import TextTask
from elmore.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A task and its settings."""

    task: type[Task]
    settings: type  # a dataclass; all settings have defaults
    max_batch_size: int | None = None  # for a network that reads one document at a time

    @property
    def name(self) -> str:
        """The name on the command line, in settings and in saved folders."""
        return self.task.name

    @property
    def also(self) -> tuple[str, ...]:
        """Its other names."""
        return OTHER_NAMES.get(self.name, ())


KINDS = {
    kind.name: kind
    for kind in (
        Kind(task=EntityTask, settings=EntitySettings),
        Kind(task=TagTask, settings=TagSettings),
        Kind(task=SentimentTask, settings=SentimentSettings),
        Kind(task=EntailmentTask, settings=TextSettings),
        Kind(task=RoleTask, settings=RoleSettings),
        Kind(task=CoreferenceTask, settings=CoreferenceSettings, max_batch_size=1),
        Kind(task=QuestionTask, settings=QuestionSettings),
        Kind(task=TextTask, settings=TextSettings),
        Kind(task=PairTask, settings=TextSettings),
    )
}


def find_kind(name: str) -> Kind:
    """Return a task by any of its names, ignoring case."""
    for kind in KINDS.values():
        if str(name).lower() in (kind.name, *kind.also):
            return kind
    raise ConfigError(f"unknown task {name!r:.60}; choose one of: {list_names()}")

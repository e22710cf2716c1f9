"""The table of all tasks by name; add new tasks here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elmore.errors import ConfigError
from elmore.tasks.kinds.classes import TextSettings
from elmore.tasks.kinds.coreference import CoreferenceSettings, CoreferenceTask
from elmore.tasks.kinds.entailment import (
    EntailmentTask,
    PairTask,
)
from elmore.tasks.kinds.entities import EntitySettings, EntityTask
from elmore.tasks.kinds.questions import QuestionSettings, QuestionTask
from elmore.tasks.kinds.roles import RoleSettings, RoleTask
from elmore.tasks.kinds.sentiment import SentimentSettings, SentimentTask
from elmore.tasks.kinds.tags import TagSettings, TagTask
from elmore.tasks.kinds.texts import TextTask
from elmore.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A task and its other names."""

    name: str
    task: Callable[[Any], Task]
    settings: type
    also: tuple[str, ...] = ()
    max_batch_size: int | None = None  # for a network that reads one document at a time


KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="entities", task=EntityTask, settings=EntitySettings, also=("ner",)),
        Kind(name="tags", task=TagTask, settings=TagSettings, also=("pos", "chunks")),
        Kind(name="sentiment", task=SentimentTask, settings=SentimentSettings, also=("sst",)),
        Kind(name="entailment", task=EntailmentTask, settings=TextSettings, also=("snli",)),
        Kind(name="roles", task=RoleTask, settings=RoleSettings, also=("srl",)),
        Kind(
            name="coreference",
            task=CoreferenceTask,
            settings=CoreferenceSettings,
            also=("coref",),
            max_batch_size=1,
        ),
        Kind(name="questions", task=QuestionTask, settings=QuestionSettings, also=("squad", "qa")),
        Kind(name="texts", task=TextTask, settings=TextSettings),
        Kind(name="pairs", task=PairTask, settings=TextSettings),
    )
}


def find_kind(name: str) -> Kind:
    """Return a task by any of its names, ignoring case."""
    for kind in KINDS.values():
        if name.lower() in (kind.name, *kind.also):
            return kind
    names = (
        f"{kind.name} ({', '.join(kind.also)})" if kind.also else kind.name
        for kind in KINDS.values()
    )
    raise ConfigError(f"unknown task {name!r:.60}; choose one of: {', '.join(names)}")

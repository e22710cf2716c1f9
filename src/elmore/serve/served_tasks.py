"""The trained tasks of a server, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from elmore import ElmoreError, load_task
from elmore.serve.errors import RequestError
from elmore.serve.named_sources import name_sources
from elmore.serve.settings import ServeSettings


@dataclass(frozen=True)
class ServedTask:
    """A trained task and its name; the kind says what an example is."""

    name: str
    kind: str
    model: Any  # what `load_task` returns

    def describe(self) -> dict[str, str]:
        """Return what the page needs to know."""
        return {"name": self.name, "kind": self.kind}

    def parse(self, given: Any) -> Any:
        """Return an example of the task, or refuse the request."""
        try:
            return self.model.task.parse(given)
        except ElmoreError as error:
            raise RequestError(422, str(error), field="input") from None


def load_tasks(settings: ServeSettings) -> list[ServedTask]:
    """Load all tasks."""
    return [
        ServedTask(name, model.task.name, model)
        for name, folder in name_sources(settings.tasks, what="task").items()
        for model in [load_task(folder, device=settings.device)]
    ]


def find_task(tasks: Sequence[ServedTask], name: str | None) -> ServedTask:
    """Return the task that a request asks for, by default the first."""
    if not tasks:
        raise RequestError(
            404, "this server has no task; start it with --task and a folder of elmore fit"
        )
    for task in tasks:
        if name is None or task.name == name:
            return task
    known = ", ".join(task.name for task in tasks)
    raise RequestError(
        404, f"there is no task {(name or '')[:60]!r}; this server has: {known}", field="task"
    )

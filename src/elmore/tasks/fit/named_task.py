"""The settings and data files of a task, from what a user names."""

import json
from collections.abc import Sequence
from pathlib import Path

from elmore.errors import ConfigError
from elmore.settings import read_path
from elmore.tasks.data.parts import Parts, find_parts
from elmore.tasks.fit.settings import FitSettings, load_settings


def open_task(
    task: str,
    *,
    data: str | Path | None = None,
    train: str | Path | None = None,
    dev: str | Path | None = None,
    test: str | Path | None = None,
    words: str | Path | None = None,
    config: str | Path | None = None,
    changes: Sequence[str] = (),
) -> tuple[FitSettings, Parts]:
    """Return a task's settings and files; `changes` are of the form `section.setting=value`."""
    if words is not None:
        changes = [*changes, f"words.file={json.dumps(str(words))}"]
    settings = load_settings(
        task, config=None if config is None else Path(config), changes=list(changes)
    )
    if data is None and (train is None or dev is None):
        missing = "train" if dev else "dev" if train else "data"
        raise ConfigError(f"{missing} is missing; give a folder (data), or both train and dev")
    parts = {"train": train, "dev": dev, "test": test}
    return settings, find_parts(
        None if data is None else read_path("data", data),
        **{part: None if path is None else read_path(part, path) for part, path in parts.items()},
    )

"""What is served has a name: NAME=SOURCE, or the name of its folder."""

from collections.abc import Sequence
from pathlib import Path

from elmore import ElmoreError


def name_sources(given: Sequence[str], *, what: str) -> dict[str, str]:
    """Return the source of each name; without NAME=, a path's last part or a hub id.

    `what` is the option without its dashes: model or task.

    >>> name_sources(["owner/news", "law=models/2"], what="model")
    {'owner/news': 'owner/news', 'law': 'models/2'}
    """
    named: dict[str, str] = {}
    for text in given:
        name, equals, source = text.partition("=")
        if not equals or Path(text).exists():
            path = Path(text)
            name, source = (path.resolve().name if path.exists() else text), text
        if not name or not source:
            place = what.upper()
            raise ElmoreError(
                f"--{what} {text!r:.200} has an empty part; give {place} or NAME={place}"
            )
        if name in named:
            raise ElmoreError(
                f"two {what}s are called {name!r:.60}; name them with --{what} NAME={what.upper()}"
            )
        named[name] = source
    return named

"""Refuse a tool that is missing or has an untested version, with one sentence."""

import re
from importlib import metadata

from elmore import ElmoreError, MissingExtraError


def require(
    distribution: str,
    *,
    extra: str,
    at_least: tuple[int, ...],
    below: tuple[int, ...] | None = None,
) -> None:
    """Raise an error unless a library is installed in a version that works."""
    module = f"elmore.integrations.{extra.replace('-', '_')}"
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise MissingExtraError(needed_for=module, extra=extra) from error
    check_version(
        distribution, version, needed_for=module, extra=extra, at_least=at_least, below=below
    )


def check_version(
    distribution: str,
    version: str,
    *,
    needed_for: str,
    extra: str,
    at_least: tuple[int, ...],
    below: tuple[int, ...] | None = None,
) -> None:
    """Raise an error unless a version works."""
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if found < at_least or (below is not None and found >= below):
        bounds = f"{_show(at_least)} or later" if below is None else _show_range(at_least, below)
        raise ElmoreError(
            f"{distribution} {version} is installed, but {needed_for} needs {bounds}: "
            f"pip install 'elmore[{extra}]'"
        )


def _show(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _show_range(at_least: tuple[int, ...], below: tuple[int, ...]) -> str:
    return f"at least {_show(at_least)} and less than {_show(below)}"

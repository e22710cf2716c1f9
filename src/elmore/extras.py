"""Check optional libraries before they are imported: the versions are those of pyproject.toml."""

from collections.abc import Iterator
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

from elmore.arguments import explain_calls
from elmore.errors import ElmoreError, MissingExtraError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MODULES = {"scikit-learn": "sklearn"}  # others are named like the library


@explain_calls()
def require_extra(extra: str, *, needed_for: str) -> None:
    """Raise an error unless all libraries of an extra are installed, in versions that work."""
    for requirement in _read_requirements(extra):
        version = _find_version(requirement.name)
        if version is None:
            raise MissingExtraError(needed_for=needed_for, extra=extra)
        if not requirement.specifier.contains(version, prereleases=True):
            bounds = ",".join(sorted(map(str, requirement.specifier), reverse=True))
            raise ElmoreError(
                f"{requirement.name} {version} is installed, but {needed_for} needs "
                f"{requirement.name}{bounds}: pip install 'elmore[{extra}]'"
            )


def _read_requirements(extra: str) -> Iterator["Requirement"]:
    from packaging.requirements import Requirement  # noqa: PLC0415  `import elmore` stays quick

    try:
        lines = metadata.requires("elmore") or []
    except metadata.PackageNotFoundError:  # elmore runs from its sources, without being installed
        return
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is not None and requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _find_version(library: str) -> str | None:
    """Return the version of a library, None if it is missing."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        # Some come under another name, such as onnxruntime-gpu or polars-lts-cpu.
        module = MODULES.get(library, library.replace("-", "_"))
        return None if find_spec(module) is None else import_module(module).__version__

"""Import elmore's drop-in modules under the names of the old libraries."""

import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

PACKAGE = "elmore.compat"
# Parts of a library whose names are in its drop-in module itself.
PARTS = {
    "bilm.data": "bilm",
    "bilm.elmo": "bilm",
    "bilm.model": "bilm",
    "elmoformanylangs.elmo": "elmoformanylangs",
    "simple_elmo.elmo_helpers": "simple_elmo",
}


def is_installed(spec: ModuleSpec | None) -> bool:
    """Return whether a spec is that of a real library, not of a folder that has its name."""
    return spec is not None and spec.has_location


class OldModule(ModuleType):
    """A drop-in module under its old name; importing another name from it is an ImportError."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return import_module(f"{self.__name__}.{name}")


class OldImports(MetaPathFinder, InspectLoader):
    """Finds modules of some old libraries, unless real ones are on `sys.path`."""

    def __init__(self, libraries: Sequence[str]) -> None:
        self._libraries = libraries

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the spec of a drop-in module; None for other libraries."""
        library = fullname.split(".", maxsplit=1)[0]
        if library not in self._libraries:
            return None
        if fullname == library:
            if is_installed(PathFinder.find_spec(fullname)):
                return None
        elif not isinstance(sys.modules.get(library), OldModule):
            return None
        own = _find(fullname)
        if own is None:
            raise ModuleNotFoundError(
                f"elmore provides no {fullname}; of {library} it provides: "
                f"{', '.join(_list_names(library))}",
                name=fullname,
            )
        # Only in packages is a missing name looked for here, and this error raised.
        is_program = own.name.endswith((".run", ".__main__"))
        return ModuleSpec(fullname, self, origin=own.origin, is_package=not is_program)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make an empty module."""
        return OldModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module with the names of elmore's."""
        own = import_module(_name_own(module.__name__))
        names = getattr(own, "__all__", [])
        vars(module).update({name: getattr(own, name) for name in names}, __doc__=own.__doc__)

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of a module, for `python -m`."""
        own = _find(fullname)
        return own.loader.get_code(own.name) if own and own.loader else None  # type: ignore[attr-defined]

    def get_source(self, fullname: str) -> None:
        """Return nothing; tracebacks show the source of elmore's own module."""


def _name_own(name: str) -> str:
    """Return the name of the drop-in module."""
    return f"{PACKAGE}.{PARTS.get(name, name)}"


def _find(name: str) -> ModuleSpec | None:
    try:
        return find_spec(_name_own(name))
    except ModuleNotFoundError:  # inside a module that is not a package
        return None


def _list_names(library: str) -> list[str]:
    package = import_module(f"{PACKAGE}.{library}")
    path = getattr(package, "__path__", [])
    submodules = [module.name for module in pkgutil.walk_packages(path, f"{package.__name__}.")]
    return [
        f"{module.removeprefix(f'{PACKAGE}.')}.{name}"
        for module in [package.__name__, *submodules]
        if not module.endswith("__main__")
        for name in getattr(import_module(module), "__all__", [])
    ]

"""Build native libraries for tests, from the sources and with the flags of setup.py.

`python -m tests.kernels.libraries build/sanitized` builds those that `make sanitize` runs.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "elmore" / "kernels" / "native"
# -O1 compiles several times faster than -O3. It must not change a bit: no flag lets it.
QUICK = ["-O1"]
SANITIZE = [
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    *("-O1", "-g", "-fno-omit-frame-pointer"),
]


@functools.cache
def load_setup() -> ModuleType:
    """Import setup.py, which builds nothing when it is imported."""
    spec = importlib.util.spec_from_file_location("elmore_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_compiler() -> str | None:
    """Return a C++ compiler like gcc or clang, if there is one."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


def missing_tool() -> str | None:
    """Say what keeps tests from building libraries here, if anything does."""
    if importlib.util.find_spec("setuptools") is None:
        return "setuptools, which setup.py imports, is not installed"
    return "there is no C++ compiler" if find_compiler() is None else None


def compile_library(source: Path, target: Path, flags: list[str]) -> None:
    """Compile one file into a library."""
    compiler = find_compiler()
    assert compiler is not None
    command = [compiler, "-shared", "-fPIC", *flags, str(source), "-o", str(target)]
    subprocess.run(command, check=True)


def build(name: str, folder: Path, extra: list[str], *, sources: Path = SOURCES) -> None:
    """Build the library called `name` into a folder where `kernels/library.py` finds it."""
    setup = load_setup()
    flags = {"cpu": [], "wide": setup.WIDE, **setup.VARIANTS}[name]
    source = sources / ("cpu.cpp" if name == "cpu" else "exports.cpp")
    compile_library(source, folder / f"_{name}.test.so", [*setup.FLAGS, *extra, *flags])


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    # Those with instructions that this CPU lacks are built too, and not used.
    for library in ("cpu", *load_setup().VARIANTS, "wide"):
        build(library, target, SANITIZE)

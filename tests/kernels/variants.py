"""The ways to compute, each to be used by name; one that cannot run here skips its tests."""

import contextlib
import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from elmore.errors import ConfigError
from elmore.kernels import library
from tests.kernels import libraries

# Tests with `wide` are slow because it has to be compiled first.
WIDE = pytest.param("wide", marks=pytest.mark.slow)
NATIVE = ["avx2", WIDE, "avx512", "avx512_vnni", "avx512_bf16"]

GIVEN_FOLDER = Path(os.environ.get("ELMORE_KERNEL_FOLDER") or Path(library.__file__).parent)
# `make sanitize` sets this. It is about our own code, and slow.
IS_SANITIZED = "ELMORE_SANITIZED" in os.environ
ALL = NATIVE if IS_SANITIZED else [*NATIVE, "torch"]
not_sanitized = pytest.mark.skipif(
    IS_SANITIZED, reason="says nothing about memory errors, and takes long under sanitizers"
)


@contextlib.contextmanager
def using(name: str) -> Iterator[str]:
    """Compute with one variant for a while."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ELMORE_KERNEL", name.split("_", maxsplit=1)[0])
        if name != "torch":
            environment.setenv("ELMORE_KERNEL_FOLDER", str(_folder_with(name)))
        try:
            library.find_kernel()
        except ConfigError as error:
            pytest.skip(f"{name}: {error}")
        yield name


@functools.cache
def _folder_with(name: str) -> Path:
    """Return a folder that has this library and no other, so that it is the one to be chosen."""
    folder = Path(_temporary().name) / name
    folder.mkdir()
    for part in ("cpu", name):
        for path in GIVEN_FOLDER.glob(f"_{part}.*so"):
            (folder / path.name).symlink_to(path.resolve())
    is_native = any(folder.glob("_cpu.*so"))  # else this is no machine for these kernels
    if name == "wide" and is_native and not any(folder.glob("_wide.*so")):
        if reason := libraries.missing_tool():
            pytest.skip(f"wide, which tests build, cannot be built: {reason}")
        libraries.build("wide", folder, libraries.QUICK)
    return folder


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that goes when the interpreter does."""
    return tempfile.TemporaryDirectory(prefix="elmore-kernels-")

"""Find and load the native library for this CPU; without one, torch computes the same vectors.

`ELMORE_KERNEL` (avx512, avx2 or torch) overrides the choice. `ELMORE_KERNEL_FOLDER` is another
folder of libraries, such as those built with sanitizers.
"""

import ctypes
import logging
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntFlag
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from elmore.errors import ConfigError
from elmore.kernels.interface import INTERFACE, SIGNATURES

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger(__name__)

TORCH = "torch"

# Without the cache, because pip also caches wheels built without kernels.
REBUILD = (
    "To build the kernels, install a C++ compiler and run in a clone of elmore: "
    "pip install --force-reinstall --no-deps --no-cache-dir ."
)


class Feature(IntFlag):
    """CPU features, with the values of cpu.cpp."""

    AVX2 = 1
    AVX512 = 2
    VNNI = 4
    BF16 = 8


_AVX512 = Feature.AVX2 | Feature.AVX512

# What each library needs, fastest first. `wide` emulates 16 lanes on a CPU with 8, so that tests
# can run the AVX-512 code anywhere. It is used only if named.
_NEEDS = {
    "avx512_bf16": _AVX512 | Feature.VNNI | Feature.BF16,
    "avx512_vnni": _AVX512 | Feature.VNNI,
    "avx512": _AVX512,
    "avx2": Feature.AVX2,
    "wide": Feature.AVX2,
}
_CHOICES = {
    "avx512": ["avx512_bf16", "avx512_vnni", "avx512"],
    "avx2": ["avx2"],
    "wide": ["wide"],
    None: ["avx512_bf16", "avx512_vnni", "avx512", "avx2"],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """A loaded library. Its functions release the GIL while they run."""

    name: str
    functions: ctypes.CDLL
    panel: int  # outputs per panel of a packed matrix


def find_kernel() -> Kernel | None:
    """Return the kernel to use, or None for torch; log once if there is none."""
    folder = os.environ.get("ELMORE_KERNEL_FOLDER")
    choice = _choose(chosen_by_hand(), folder)
    # Only one of several threads gets its own object back. A lock could be held during a fork.
    if choice.reason and _noted.setdefault(folder, mark := object()) is mark:
        logger.warning(
            "note: %s, so torch is used: same vectors, several times slower%s",
            choice.reason,
            f". {choice.remedy}" if choice.remedy else "",
        )
    return choice.kernel


def find_kernel_for(tensors: "Iterable[Tensor]") -> Kernel | None:
    """Return the kernel for these tensors, or None for torch; kernels need float32 on the CPU."""
    return find_kernel() if all(map(_is_plain, tensors)) else None


def load_kernel(name: str) -> Kernel:
    """Return the kernel called `name`, which some weights were packed for."""
    found = find_kernel()
    if found is None or found.name != name:
        raise ConfigError(
            f"these weights were packed for the kernel {name}, but {describe_kernel()} is in use "
            "now; load the model again"
        )
    return found


def describe_kernel() -> str:
    """Return the name of the kernel in use, for reports."""
    kernel = find_kernel()
    return TORCH if kernel is None else kernel.name


def chosen_by_hand() -> str | None:
    """Return the value of ELMORE_KERNEL, or None if unset."""
    return os.environ.get("ELMORE_KERNEL") or None


@contextmanager
def choosing_kernel(kernel: str | None) -> Iterator[None]:
    """Use one kernel for models that are loaded inside; None changes nothing."""
    before = os.environ.get("ELMORE_KERNEL")
    if kernel is not None:
        os.environ["ELMORE_KERNEL"] = kernel
    try:
        yield
    finally:
        if kernel is not None:
            if before is None:
                del os.environ["ELMORE_KERNEL"]
            else:
                os.environ["ELMORE_KERNEL"] = before


@dataclass(frozen=True, kw_only=True)
class KernelReport:
    """Which kernels exist on this machine."""

    used: str | None  # None if ELMORE_KERNEL names a kernel that is not available
    reason: str  # why no kernel is used and what to do; empty if one is, or if torch was chosen
    built: list[str]
    usable: list[str]
    features: list[str] | None  # of the CPU; None if the library that detects them is missing


def report_kernels() -> KernelReport:
    """Return which kernels were built, which work here, and which one is used."""
    chosen_folder = os.environ.get("ELMORE_KERNEL_FOLDER")
    folder = _find_folder(chosen_folder)
    try:
        choice = _choose(chosen_by_hand(), chosen_folder)
    except ConfigError as error:
        used, reason = None, str(error)
    else:
        used = TORCH if choice.kernel is None else choice.kernel.name
        reason = ". ".join(filter(None, [choice.reason, choice.remedy]))
    features = _cpu_features(folder)
    return KernelReport(
        used=used,
        reason=reason,
        built=[name for name in _NEEDS if _library_path(folder, name)],
        usable=[
            name
            for name, needs in _NEEDS.items()
            if features is not None and needs in features and _load(name, folder)
        ],
        features=None if features is None else [str(flag.name).lower() for flag in features],
    )


def _is_plain(tensor: "Tensor") -> bool:
    """Return whether a tensor is float32 on the CPU, without importing torch for --help."""
    return tensor.is_cpu and tensor.is_floating_point() and tensor.itemsize == 4


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    kernel: Kernel | None
    reason: str = ""  # why there is no kernel; empty if torch was chosen
    remedy: str = ""


@cache
def _choose(choice: str | None, chosen_folder: str | None) -> _Choice:
    folder = _find_folder(chosen_folder)
    if choice == TORCH:
        return _Choice(kernel=None)
    if choice not in _CHOICES:
        raise ConfigError(f"ELMORE_KERNEL is {choice!r}; choose avx512, avx2 or torch")
    features = _cpu_features(folder)
    usable = [name for name in _CHOICES[choice] if features and _NEEDS[name] in features]
    for name in usable:
        kernel = _load(name, folder)
        if kernel is not None:
            return _Choice(kernel=kernel)
    remedy = ""
    if features is None and not _can_be_built():
        reason = "there are no native kernels for this system (only for x86-64 Linux and macOS)"
    elif features is None:
        reason, remedy = "the native kernels were not built for this machine", REBUILD
    elif usable:
        reason, remedy = f"the library {usable[0]} is missing or cannot be loaded", REBUILD
    else:
        reason = f"this CPU has no {choice or 'avx2'}"
    if choice is not None:  # a kernel that is named must be available
        raise ConfigError(f"ELMORE_KERNEL is {choice!r}, but {reason}; choose torch or unset it")
    return _Choice(kernel=None, reason=reason, remedy=remedy)


_noted: dict[str | None, object] = {}  # folders for which the note was logged


def _can_be_built() -> bool:
    """Return whether setup.py builds kernels on this kind of system."""
    return platform.machine().lower() in {"x86_64", "amd64"} and sys.platform != "win32"


def _find_folder(chosen: str | None) -> Path:
    return Path(chosen) if chosen else Path(__file__).parent


def _library_path(folder: Path, name: str) -> Path | None:
    # The rest of the name depends on the interpreter.
    return next(iter(sorted(folder.glob(f"_{name}.*so"))), None)


def _cpu_features(folder: Path) -> Feature | None:
    path = _library_path(folder, "cpu")
    if path is None:
        return None
    try:
        return Feature(ctypes.CDLL(str(path)).elmore_cpu_features())
    except (OSError, AttributeError):  # built for another machine, or not one of our libraries
        return None


def _load(name: str, folder: Path) -> Kernel | None:
    path = _library_path(folder, name)
    if path is None:
        return None
    try:
        functions = ctypes.CDLL(str(path))
        for function, (result, arguments) in SIGNATURES.items():
            getattr(functions, function).restype = result
            getattr(functions, function).argtypes = arguments
    except (OSError, AttributeError):  # as above
        return None
    if functions.elmore_interface() != INTERFACE:  # left over from another version
        return None
    return Kernel(name=name, functions=functions, panel=functions.elmore_panel())

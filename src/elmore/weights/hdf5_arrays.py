"""Read and write named float arrays in HDF5 without trusting the sizes a file declares."""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Protocol

import h5py
import numpy as np
from numpy.typing import NDArray

from elmore.errors import ModelError
from elmore.files.untrusted import check_file

FloatArray = NDArray[np.float32]
Shape = tuple[int, ...]

# Weights hardly compress, so arrays this many times larger than their file can't be in it.
MAX_EXPANSION = 10
NUMBERS_AT_ONCE = 1 << 16
# The errors that h5py raises on damaged files, depending on where the damage is.
HDF5_ERRORS = (OSError, RuntimeError, LookupError, ValueError, TypeError, ArithmeticError)


class WeightArrays(Protocol):
    """Named arrays of weights, from a file of any format."""

    def has(self, name: str) -> bool:
        """Return whether there is such an array."""

    def read(self, shapes: Mapping[str, Shape]) -> "Mapping[str, ArrayParts]":
        """Check all named arrays, then read them; each part when it is taken, if possible."""


class ArrayParts(Protocol):
    """An array in memory, or one of which a part is read when it is taken."""

    @property
    def shape(self) -> Shape:
        """The shape of the whole array."""

    def __getitem__(self, rows: slice, /) -> FloatArray: ...


@dataclass(frozen=True)
class Hdf5Arrays:
    """The arrays of an open HDF5 file."""

    file: h5py.File

    def __str__(self) -> str:
        """Return the name of the file for messages."""
        return str(self.file.filename)

    def has(self, name: str) -> bool:
        """Return whether there is such an array in this file."""
        return has_dataset(self.file, name)

    def read(self, shapes: Mapping[str, Shape]) -> "Mapping[str, ArrayOnDemand]":
        """Check all named arrays; read each part when it is taken, while the file is open."""
        return find_arrays(self.file, shapes)


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open a file for reading; only functions of this module may read it."""
    check_file(path)
    with _explaining(path):
        file = h5py.File(path, "r", locking=False)
    try:
        yield file
    finally:
        with _explaining(path):
            file.close()


@contextmanager
def _explaining(path: str | Path) -> Iterator[None]:
    """Turn any HDF5 error into a ModelError."""
    try:
        yield
    except (*HDF5_ERRORS, MemoryError) as error:
        raise ModelError(
            f"{path} is not a complete HDF5 file ({error}); download it again"
        ) from error


def find_arrays(file: h5py.File, shapes: Mapping[str, Shape]) -> "dict[str, ArrayOnDemand]":
    """Check all named arrays; their numbers are read later."""
    with _explaining(file.filename):
        datasets = {name: _find_dataset(file, name, shape) for name, shape in shapes.items()}
        _check_sizes(file, list(datasets.values()))
    return {name: ArrayOnDemand(file, name, dataset) for name, dataset in datasets.items()}


@dataclass(frozen=True)
class ArrayOnDemand:
    """An array in an open file, of which a part is read when it is taken."""

    file: h5py.File
    name: str
    dataset: h5py.Dataset

    @property
    def shape(self) -> Shape:
        """The shape of the whole array."""
        shape: Shape = self.dataset.shape
        return shape

    @property
    def rows_per_chunk(self) -> int:
        """How many rows HDF5 unpacks at once, at least."""
        return 1 if self.dataset.chunks is None else int(self.dataset.chunks[0])

    def __getitem__(self, rows: slice) -> FloatArray:
        with _explaining(self.file.filename):
            return _read(self.file, self.name, self.dataset, rows)


def has_dataset(file: h5py.File, name: str) -> bool:
    """Return whether `name` is a dataset inside this file, not a link to another one."""
    node = file
    with _explaining(file.filename):
        for part in name.split("/"):
            # A link could make the model read, and so leak, any other file.
            if not isinstance(node, h5py.Group) or not isinstance(
                node.get(part, getlink=True), h5py.HardLink
            ):
                return False
            node = node[part]
        return isinstance(node, h5py.Dataset)


def _find_dataset(file: h5py.File, name: str, shape: Shape) -> h5py.Dataset:
    if not has_dataset(file, name):
        raise ModelError(
            f"{file.filename} lacks the array {name!r}, which its options require; "
            "give the options that belong to these weights"
        )
    dataset = file[name]
    if dataset.external or dataset.is_virtual:
        raise ModelError(
            f"{file.filename}: {name!r} is stored in another file; copy it into this one"
        )
    if dataset.shape != shape:
        raise ModelError(
            f"{file.filename}: {name!r} has shape {dataset.shape}, expected {shape}; "
            "give the options, and the vocabulary if there is one, that belong to these weights"
        )
    if dataset.dtype.kind != "f":
        raise ModelError(
            f"{file.filename}: {name!r} holds {dataset.dtype}, not float numbers; download it again"
        )
    return dataset


def _check_sizes(file: h5py.File, datasets: list[h5py.Dataset]) -> None:
    """Refuse arrays larger than the file could hold, before allocating memory for them."""
    declared = sum(dataset.size * max(dataset.dtype.itemsize, 4) for dataset in datasets)
    size = Path(file.filename).stat().st_size
    # HDF5 unpacks whole chunks, even if the array covers only a part.
    has_large_chunks = any(
        dataset.chunks is not None and prod(dataset.chunks) > dataset.size for dataset in datasets
    )
    if declared > MAX_EXPANSION * size or has_large_chunks:
        raise ModelError(
            f"{file.filename} declares {declared:,} bytes of weights or more but has only "
            f"{size:,}; download it again"
        )


def _read(file: h5py.File, name: str, dataset: h5py.Dataset, rows: slice) -> FloatArray:
    array = np.empty((len(range(len(dataset))[rows]), *dataset.shape[1:]), np.float32)
    if array.size:
        dataset.read_direct(array, rows)
    if not is_finite(array):
        raise ModelError(
            f"{file.filename}: {name!r} has numbers that are not finite; download it again"
        )
    return array


def is_finite(array: FloatArray) -> bool:
    """Return whether all numbers are finite; checked by parts that stay in the cache."""
    numbers = array.reshape(-1)
    return all(
        np.isfinite(numbers[start : start + NUMBERS_AT_ONCE]).all()
        for start in range(0, len(numbers), NUMBERS_AT_ONCE)
    )


def write_arrays(path: Path, arrays: Mapping[str, FloatArray]) -> None:
    """Write contiguous float32 datasets without attributes, as bilm-tf does."""
    # In memory first, because HDF5 can crash the process when the disk is full.
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=np.ascontiguousarray(array, dtype=np.float32))
    path.write_bytes(buffer.getbuffer())

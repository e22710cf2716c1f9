"""Read and write named float arrays in HDF5, distrusting what a file declares of itself."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from elmore.errors import ModelError

FloatArray = NDArray[np.float32]
Shape = tuple[int, ...]

# Weights hardly compress; a dataset this many times larger than its bytes in the file is a bomb.
MAX_COMPRESSION = 100


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open a file for reading; whatever HDF5 finds wrong with it becomes one sentence."""
    if not path.is_file():
        raise ModelError(f"there is no weight file {path}; check the path")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise ModelError(f"{path} is not whole HDF5 ({error}); get it again") from error


def read_arrays(file: h5py.File, shapes: Mapping[str, Shape]) -> dict[str, FloatArray]:
    """Read the named arrays, all checked before the first is read."""
    datasets = {name: _find_dataset(file, name, shape) for name, shape in shapes.items()}
    return {name: _read(file, name, dataset) for name, dataset in datasets.items()}


def has_dataset(file: h5py.File, name: str) -> bool:
    """Tell whether `name` leads to a dataset inside this very file."""
    node = file
    for part in name.split("/"):
        if not isinstance(node, h5py.Group) or not isinstance(
            node.get(part, getlink=True), h5py.HardLink
        ):
            return False
        node = node[part]
    return isinstance(node, h5py.Dataset)


def _find_dataset(file: h5py.File, name: str, shape: Shape) -> h5py.Dataset:
    # Links and storage outside the file could make it read, and pass on, any other file.
    if not has_dataset(file, name):
        raise ModelError(f"{file.filename} lacks the array {name!r} that its options call for")
    dataset = file[name]
    if dataset.external or dataset.is_virtual:
        raise ModelError(f"{file.filename}: {name!r} is stored in another file; copy it in")
    if dataset.shape != shape:
        raise ModelError(
            f"{file.filename}: {name!r} has shape {dataset.shape}, its options call for {shape}; "
            "give the options that belong to these weights"
        )
    if dataset.dtype.kind != "f":
        raise ModelError(f"{file.filename}: {name!r} holds {dataset.dtype}, not float numbers")
    stored = dataset.id.get_storage_size()
    if dataset.size * dataset.dtype.itemsize > MAX_COMPRESSION * stored:
        raise ModelError(
            f"{file.filename}: {name!r} declares {dataset.size} numbers but holds {stored} bytes"
        )
    return dataset


def _read(file: h5py.File, name: str, dataset: h5py.Dataset) -> FloatArray:
    array = dataset.astype(np.float32)[...]
    if not np.isfinite(array).all():
        raise ModelError(f"{file.filename}: {name!r} has numbers that are not finite; get it again")
    return array


def write_arrays(path: Path, arrays: Mapping[str, FloatArray]) -> None:
    """Write contiguous float32 datasets without attributes, as bilm-tf does."""
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=np.ascontiguousarray(array, dtype=np.float32))

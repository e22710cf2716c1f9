"""Read named weights from a `torch.save` file, of current torch or torch 0.4, as plain data.

A pickle can run code and declare any size. Neither is allowed here, so no unpickler reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from elmore.errors import ElmoreError, ModelError
from elmore.files.untrusted import check_file, is_count
from elmore.weights.plain_pickle import Call
from elmore.weights.torch_storage import (
    StorageId,
    TorchFile,
    open_torch_file,
    read_storage_id,
)

REBUILD_TENSOR = ("torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2")
REBUILD_PARAMETER = "torch._utils _rebuild_parameter"
# More than any weight has.
MAX_DIMENSIONS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class _View:
    """A weight: a strided view of a storage."""

    storage: StorageId
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        return torch.Size(self.shape).numel() * self.storage.dtype.itemsize


def read_torch_file(path: Path) -> dict[str, Tensor]:
    """Return the weights in float32; a file with code in it is refused, and nothing is run."""
    size = check_file(path)
    try:
        with open_torch_file(path, size=size) as file:
            weights = _read_views(file, _find_views(path, file.content, size=size))
    except ElmoreError:
        raise
    except PermissionError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error
    except UnpicklingError as error:
        raise ModelError(
            f"{path} holds more than weights, or is damaged ({error!s:.100}); download it again "
            "from a source you trust"
        ) from error
    except Exception as error:  # zipfile, pickletools and numpy can raise anything on damaged files
        raise ModelError(f"{path} is not a complete torch file; download it again") from error
    for name, weight in weights.items():
        if not bool(torch.isfinite(weight).all()):
            raise ModelError(
                f"{path}: {name!r:.60} has numbers that are not finite; download it again"
            )
    return weights


def _find_views(path: Path, content: Any, *, size: int) -> dict[str, _View]:
    """Return a view per weight; refuse more weights than a file of `size` bytes can hold."""
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds no named weights; download it again")
    views = {}
    for name, value in content.items():
        view = _find_view(value)
        if view is None:
            raise ModelError(f"{path}: {name!r:.60} is not an array of floats; download it again")
        views[name] = view
    # A view of a few bytes can declare any shape, and views can share bytes, so check the sum.
    declared = sum(view.num_bytes for view in views.values())
    if declared > size:
        raise ModelError(
            f"{path} declares {declared:,} bytes of weights but has only {size:,} bytes; "
            "download it again"
        )
    return views


def _find_view(value: Any) -> _View | None:
    """Return the view of a pickled tensor or parameter; None for anything else."""
    if type(value) is Call and value.path == REBUILD_PARAMETER:
        value = value.arguments[0]
    if type(value) is not Call or value.path not in REBUILD_TENSOR:
        return None
    storage = read_storage_id(value.arguments[0])
    offset, shape, stride = value.arguments[1:4]
    if type(shape) is not tuple or type(stride) is not tuple or len(shape) != len(stride):
        return None
    if len(shape) > MAX_DIMENSIONS or not all(map(is_count, (offset, *shape, *stride))):
        return None
    steps = (step * (number - 1) for number, step in zip(shape, stride, strict=True))
    if 0 not in shape and offset + sum(steps) >= storage.num_items:
        return None
    return _View(storage=storage, offset=offset, shape=shape, stride=stride)


def _read_views(file: TorchFile, views: Mapping[str, _View]) -> dict[str, Tensor]:
    storages: dict[tuple[Any, ...], Tensor] = {}
    weights = {}
    for name, view in views.items():
        storage = view.storage
        key = (storage.key, storage.dtype, storage.start, storage.num_items)
        if key not in storages:
            storages[key] = file.read(storage)
        if 0 in view.shape:
            weights[name] = torch.zeros(view.shape)
        else:
            numbers = storages[key].as_strided(view.shape, view.stride, view.offset)
            weights[name] = numbers.to(torch.float32).contiguous()
    return weights

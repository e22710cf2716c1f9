"""Read named weights from a file of `torch.save`, of today's kind or torch 0.4's, as plain data.

A pickle can run code and declare sizes; here it may do neither, so no unpickler reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from elmore.errors import ElmoreError, ModelError
from elmore.files.bounded_file import check_file
from elmore.weights.plain_pickle import Call
from elmore.weights.torch_storage import (
    StorageId,
    TorchFile,
    is_count,
    open_torch_file,
    read_storage_id,
)

REBUILD_TENSOR = ("torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2")
REBUILD_PARAMETER = "torch._utils _rebuild_parameter"
# More than any weight has.
MAX_DIMENSIONS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class _View:
    """A weight: which numbers of a storage, in which shape."""

    storage: StorageId
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        return torch.Size(self.shape).numel() * self.storage.dtype.itemsize


def read_torch_file(path: Path) -> dict[str, Tensor]:
    """Return the weights in float32; code in the file is refused, not run."""
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
            f"{path} holds more than weights, or is damaged ({error!s:.100}); get it again from a "
            "source you trust"
        ) from error
    except Exception as error:  # damage can end in any error, of zipfile, pickletools or numpy
        raise ModelError(f"{path} is not a whole torch file; get it again") from error
    for name, weight in weights.items():
        if not bool(torch.isfinite(weight).all()):
            raise ModelError(f"{path}: {name!r:.60} has numbers that are not finite; get it again")
    return weights


def _find_views(path: Path, content: Any, *, size: int) -> dict[str, _View]:
    """Return what the weights look at; refuse more of it than a file of `size` bytes can hold."""
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds no named weights; get it again")
    views = {}
    for name, value in content.items():
        view = _find_view(value)
        if view is None:
            raise ModelError(f"{path}: {name!r:.60} is no array of float numbers; get it again")
        views[name] = view
    # A view can declare any shape over a few bytes; the sum, since many views can share them.
    declared = sum(view.num_bytes for view in views.values())
    if declared > size:
        raise ModelError(f"{path} declares {declared:,} bytes of weights and has {size:,} bytes")
    return views


def _find_view(value: Any) -> _View | None:
    """Return what a pickled tensor or parameter looks at; None if it is something else."""
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
        place = (storage.key, storage.dtype, storage.start, storage.num_items)
        if place not in storages:
            storages[place] = file.read(storage)
        if 0 in view.shape:
            weights[name] = torch.zeros(view.shape)
        else:
            numbers = storages[place].as_strided(view.shape, view.stride, view.offset)
            weights[name] = numbers.to(torch.float32).contiguous()
    return weights

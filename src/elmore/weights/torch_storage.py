"""The two containers that `torch.save` writes: a zip archive, and torch 0.4's pickles in a row.

Both hold a pickle, and storages (plain numbers) that the pickle refers to by a key.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO, Literal

import numpy as np
import torch
from torch import Tensor

from elmore.errors import ModelError
from elmore.weights.plain_pickle import MAX_PICKLE_BYTES, Name, Reference, read_pickle

ZIP_START = b"PK\x03\x04"
# Everything that named weights need. torch's own list is longer, and has calls that take memory.
NEEDED = re.compile(
    r"collections OrderedDict"
    r"|torch\._utils _rebuild_(tensor|tensor_v2|parameter)"
    r"|torch(\.cuda)? (Float|Double|Half|BFloat16)Storage"
)
TYPES = {
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
}
# What a file of torch 0.4 starts with, as pickles.
LEGACY_MARKS = (0x1950A86A20F9469CFC6C, 1001)


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageId:
    """What a pickle says about a storage; `start` and `num_items` are those of a part of it."""

    key: str
    dtype: torch.dtype
    total: int
    start: int
    num_items: int


@dataclass(frozen=True, kw_only=True)
class TorchFile:
    """The content of an open file; storages are read when they are asked for."""

    content: Any
    read_storage: Callable[[str], bytes]
    is_big_endian: bool

    def read(self, storage: StorageId) -> Tensor:
        """Return the numbers of a storage; refuse one that is not as long as the pickle says."""
        data = self.read_storage(storage.key)
        width = storage.dtype.itemsize
        if len(data) != storage.total * width:
            raise UnpicklingError("a storage of another size")
        raw = np.frombuffer(data, dtype=f"{'>' if self.is_big_endian else '<'}i{width}")
        part = raw[storage.start : storage.start + storage.num_items]
        return torch.from_numpy(part.astype(f"=i{width}")).view(storage.dtype)


@contextmanager
def open_torch_file(path: Path, *, size: int) -> Iterator[TorchFile]:
    """Open a torch file and read its pickles; no storage is read yet."""
    with path.open("rb") as file:
        is_archive = file.read(len(ZIP_START)) == ZIP_START
        file.seek(0)
        if not is_archive:
            yield _open_legacy(file, size=size)
            return
        with zipfile.ZipFile(file) as archive:
            _check_members(path, archive.infolist(), size=size)
            yield _open_archive(path, archive)


def read_storage_id(value: Any) -> StorageId:
    """Return what a reference of a pickle means."""
    parts = value.key if type(value) is Reference else None
    if type(parts) is not tuple or len(parts) not in (5, 6) or parts[0] != "storage":
        raise UnpicklingError("a reference to no storage")
    _, kind, key, _, total, *view = parts
    if type(kind) is not Name or type(key) is not str or not is_count(total):
        raise UnpicklingError("a reference to no storage")
    start, num_items = 0, total
    if view and view[0] is not None:  # torch 0.4 could refer to a part of a storage
        _, start, num_items = view[0]
        if not is_count(start) or not is_count(num_items) or start + num_items > total:
            raise UnpicklingError("a part of a storage that is outside of it")
    dtype = TYPES[kind.path.split()[-1]]
    return StorageId(key=key, dtype=dtype, total=total, start=start, num_items=num_items)


def is_count(value: Any) -> bool:
    """Tell whether a value is a whole number from 0 that a file could have so many bytes of."""
    return type(value) is int and 0 <= value < 1 << 62


def _check_members(path: Path, members: list[zipfile.ZipInfo], *, size: int) -> None:
    """Refuse an archive that unpacks to more than it is, or that programs read differently."""
    unpacked = sum(member.file_size for member in members)
    # torch itself stores without compressing.
    if unpacked > size or any(member.compress_type for member in members):
        raise ModelError(
            f"{path} has {size:,} bytes and would unpack to {unpacked:,}; get it again, or "
            "save it with torch.save"
        )
    seen: dict[str, str] = {}
    for member in members:
        # torch finds a member whatever the case of its name.
        other = seen.get(member.filename.lower())
        if other is not None:
            raise ModelError(
                f"{path} has two members of one name ({other!r:.60}, {member.filename!r:.60}); "
                "get it again"
            )
        seen[member.filename.lower()] = member.filename


def _open_archive(path: Path, archive: zipfile.ZipFile) -> TorchFile:
    """Read an archive of NAME/data.pkl, perhaps NAME/byteorder, and storages NAME/data/KEY."""
    names = archive.namelist()
    found = [name for name in names if re.fullmatch(r"[^/]+/data\.pkl", name)]
    if len(found) != 1:
        raise ModelError(f"{path} has {len(found)} members data.pkl, wanted one; get it again")
    root = found[0].removesuffix("data.pkl")
    if archive.getinfo(found[0]).file_size > MAX_PICKLE_BYTES:
        raise UnpicklingError(f"a pickle of over {MAX_PICKLE_BYTES:,} bytes")
    return TorchFile(
        content=read_pickle(io.BytesIO(archive.read(found[0])), allowed=NEEDED).value,
        read_storage=lambda key: archive.read(f"{root}data/{key}"),
        is_big_endian=f"{root}byteorder" in names and archive.read(f"{root}byteorder") == b"big",
    )


def _open_legacy(file: BinaryIO, *, size: int) -> TorchFile:
    """Read five pickles: two marks, the machine, the content, the keys; the storages follow."""
    pickles = io.BytesIO(file.read(MAX_PICKLE_BYTES))
    marks = tuple(read_pickle(pickles, allowed=NEEDED).value for _ in LEGACY_MARKS)
    if marks != LEGACY_MARKS:
        raise UnpicklingError("no mark of torch")
    machine = read_pickle(pickles, allowed=NEEDED).value
    order: Literal["big", "little"] = "little" if machine["little_endian"] else "big"
    data = read_pickle(pickles, allowed=NEEDED)
    widths = {
        storage.key: storage.dtype.itemsize for storage in map(read_storage_id, data.references)
    }
    keys = read_pickle(pickles, allowed=NEEDED).value
    places: dict[str, tuple[int, int]] = {}
    place = pickles.tell()
    for key in keys:
        file.seek(place)
        num_bytes = int.from_bytes(file.read(8), order) * widths[key]
        places[key] = (place + 8, num_bytes)
        place += 8 + num_bytes
        if place > size:
            raise UnpicklingError("a storage that is cut short")

    def read_storage(key: str) -> bytes:
        start, num_bytes = places[key]
        file.seek(start)
        return file.read(num_bytes)

    return TorchFile(content=data.value, read_storage=read_storage, is_big_endian=order == "big")

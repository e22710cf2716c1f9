"""The two file formats of `torch.save`: a zip archive, or (torch 0.4) a sequence of pickles.

Both hold a pickle, and storages (plain numbers) that the pickle refers to by key.
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
from elmore.files.untrusted import is_count
from elmore.weights.plain_pickle import MAX_PICKLE_BYTES, Name, Reference, read_pickle

ZIP_START = b"PK\x03\x04"
# All names that weights need. torch's own list is longer and includes calls that allocate memory.
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
# The pickled values at the start of a torch 0.4 file.
LEGACY_MARKS = (0x1950A86A20F9469CFC6C, 1001)


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageId:
    """A pickle's description of a storage, or of `num_items` of its numbers from `start`."""

    key: str
    dtype: torch.dtype
    total: int
    start: int
    num_items: int


@dataclass(frozen=True, kw_only=True)
class TorchFile:
    """The content of an open file; storages are read on demand."""

    content: Any
    read_storage: Callable[[str], bytes]
    is_big_endian: bool

    def read(self, storage: StorageId) -> Tensor:
        """Return the numbers of a storage; its length must be what the pickle says."""
        data = self.read_storage(storage.key)
        width = storage.dtype.itemsize
        if len(data) != storage.total * width:
            raise UnpicklingError("a storage has the wrong size")
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
    """Return the storage that a reference in a pickle describes."""
    parts = value.key if type(value) is Reference else None
    if type(parts) is not tuple or len(parts) not in (5, 6) or parts[0] != "storage":
        raise UnpicklingError("a reference does not name a storage")
    _, kind, key, _, total, *view = parts
    if type(kind) is not Name or type(key) is not str or not is_count(total):
        raise UnpicklingError("a reference does not name a storage")
    start, num_items = 0, total
    if view and view[0] is not None:  # torch 0.4 could refer to a part of a storage
        _, start, num_items = view[0]
        if not is_count(start) or not is_count(num_items) or start + num_items > total:
            raise UnpicklingError("a reference goes beyond the end of its storage")
    dtype = TYPES[kind.path.split()[-1]]
    return StorageId(key=key, dtype=dtype, total=total, start=start, num_items=num_items)


def _check_members(path: Path, members: list[zipfile.ZipInfo], *, size: int) -> None:
    """Refuse an archive that expands when unpacked, or that is ambiguous to read."""
    unpacked = sum(member.file_size for member in members)
    # torch itself never compresses.
    if unpacked > size or any(member.compress_type for member in members):
        raise ModelError(
            f"{path} has {size:,} bytes and would unpack to {unpacked:,}; download it again, or "
            "save it uncompressed with torch.save"
        )
    seen: dict[str, str] = {}
    for member in members:
        # torch ignores case in the names of members.
        other = seen.get(member.filename.lower())
        if other is not None:
            raise ModelError(
                f"{path} has two members with one name ({other!r:.60}, {member.filename!r:.60}); "
                "download it again"
            )
        seen[member.filename.lower()] = member.filename


def _open_archive(path: Path, archive: zipfile.ZipFile) -> TorchFile:
    """Read an archive: NAME/data.pkl, optionally NAME/byteorder, and storages NAME/data/KEY."""
    names = archive.namelist()
    found = [name for name in names if re.fullmatch(r"[^/]+/data\.pkl", name)]
    if len(found) != 1:
        raise ModelError(
            f"expected one data.pkl in {path}, got {len(found)}; download the file again"
        )
    root = found[0].removesuffix("data.pkl")
    if archive.getinfo(found[0]).file_size > MAX_PICKLE_BYTES:
        raise UnpicklingError(f"the pickle has more than {MAX_PICKLE_BYTES:,} bytes")
    return TorchFile(
        content=read_pickle(io.BytesIO(archive.read(found[0])), allowed=NEEDED).value,
        read_storage=lambda key: archive.read(f"{root}data/{key}"),
        is_big_endian=f"{root}byteorder" in names and archive.read(f"{root}byteorder") == b"big",
    )


def _open_legacy(file: BinaryIO, *, size: int) -> TorchFile:
    """Read five pickles: two marks, machine, content and keys; the storages follow them."""
    pickles = io.BytesIO(file.read(MAX_PICKLE_BYTES))
    marks = tuple(read_pickle(pickles, allowed=NEEDED).value for _ in LEGACY_MARKS)
    if marks != LEGACY_MARKS:
        raise UnpicklingError("torch's mark is missing")
    machine = read_pickle(pickles, allowed=NEEDED).value
    order: Literal["big", "little"] = "little" if machine["little_endian"] else "big"
    data = read_pickle(pickles, allowed=NEEDED)
    widths = {
        storage.key: storage.dtype.itemsize for storage in map(read_storage_id, data.references)
    }
    keys = read_pickle(pickles, allowed=NEEDED).value
    ranges: dict[str, tuple[int, int]] = {}
    offset = pickles.tell()
    for key in keys:
        file.seek(offset)
        num_bytes = int.from_bytes(file.read(8), order) * widths[key]
        ranges[key] = (offset + 8, num_bytes)
        offset += 8 + num_bytes
        if offset > size:
            raise UnpicklingError("a storage is truncated")

    def read_storage(key: str) -> bytes:
        start, num_bytes = ranges[key]
        file.seek(start)
        return file.read(num_bytes)

    return TorchFile(content=data.value, read_storage=read_storage, is_big_endian=order == "big")

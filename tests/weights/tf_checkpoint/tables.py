"""Write tables and checkpoints as TensorFlow does, so that tests can change any part of them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from elmore.weights.tf_checkpoint.crc32c import masked_crc32c

FIXTURE = Path(__file__).parent / "fixture"
MAGIC = bytes.fromhex("57fb808b247547db")


def varint(number: int) -> bytes:
    found = b""
    while number >= 0x80:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def field(number: int, value: int | bytes, *, is_fixed: bool = False) -> bytes:
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if is_fixed:
        return varint(number << 3 | 5) + value.to_bytes(4, "little")
    return varint(number << 3) + varint(value)


def make_block(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A block in which each key repeats what it shares with the one before it."""
    block, last = b"", b""
    for key, value in entries:
        shared = 0
        while shared < min(len(key), len(last)) and key[shared] == last[shared]:
            shared += 1
        block += varint(shared) + varint(len(key) - shared) + varint(len(value))
        block += key[shared:] + value
        last = key
    return block + bytes(4) + (1).to_bytes(4, "little")


def make_table(
    entries: Mapping[bytes, bytes],
    *,
    compress: Callable[[bytes], bytes] | None = None,
    per_block: int = 5,
) -> bytes:
    table, handles = b"", []
    listed = sorted(entries.items())
    for start in range(0, len(listed), per_block):
        part = listed[start : start + per_block]
        content = make_block(part)
        stored = compress(content) if compress else content
        handles.append((part[-1][0], varint(len(table)) + varint(len(stored))))
        table += finish_block(stored, kind=1 if compress else 0)
    meta = varint(len(table)) + varint(8)
    table += finish_block(make_block([]), kind=0)
    index = make_block(handles)
    footer = meta + varint(len(table)) + varint(len(index))
    return table + finish_block(index, kind=0) + footer.ljust(40, b"\0") + MAGIC


def finish_block(content: bytes, *, kind: int) -> bytes:
    trailer = bytes([kind])
    return content + trailer + masked_crc32c(content + trailer).to_bytes(4, "little")


def make_header(*, num_data_files: int = 1, is_big_endian: bool = False) -> bytes:
    return field(1, num_data_files) + (field(2, 1) if is_big_endian else b"")


def make_entry(
    array: np.ndarray, *, offset: int, dtype: int = 1, shape: Sequence[int] | None = None
) -> bytes:
    sizes = array.shape if shape is None else shape
    shape_message = b"".join(field(2, field(1, size)) for size in sizes)
    return (
        field(1, dtype)
        + field(2, shape_message)
        + field(4, offset)
        + field(5, array.nbytes)
        + field(6, masked_crc32c(array.tobytes()), is_fixed=True)
    )


def write_checkpoint(prefix: Path, arrays: Mapping[str, np.ndarray]) -> Path:
    """Write variables in single precision."""
    data, entries = b"", {b"": make_header()}
    for name, array in arrays.items():
        entries[name.encode()] = make_entry(array, offset=len(data))
        data += array.tobytes()
    prefix.with_name(f"{prefix.name}.index").write_bytes(make_table(entries))
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").write_bytes(data)
    return prefix

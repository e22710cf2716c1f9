"""Read a LevelDB table, the format of a checkpoint's index: sorted keys and values in blocks."""

from collections.abc import Iterator
from dataclasses import dataclass

from elmore.weights.tf_checkpoint.crc32c import masked_crc32c
from elmore.weights.tf_checkpoint.snappy import decompress
from elmore.weights.tf_checkpoint.wire import read_varint

FOOTER_BYTES = 48
MAGIC = 0xDB4775248B80FB57
TRAILER_BYTES = 5  # how the block is compressed, and its checksum
PLAIN, SNAPPY = 0, 1
MAX_BLOCK_BYTES = 1 << 24
# A key repeats the start of the one before it, so a few bytes can stand for a long key.
MAX_KEY_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class _Handle:
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size + TRAILER_BYTES


def read_table(data: bytes) -> dict[bytes, bytes]:
    """Return the keys and values of a table; ValueError if it is damaged."""
    if len(data) < FOOTER_BYTES or int.from_bytes(data[-8:], "little") != MAGIC:
        raise ValueError("its end mark is missing")
    _, position = _read_handle(data[-FOOTER_BYTES:], 0)  # of a block for filters, which is unused
    index, _ = _read_handle(data[-FOOTER_BYTES:], position)
    found: dict[bytes, bytes] = {}
    last_key: bytes | None = None
    num_key_bytes = end = 0
    for _, value in _read_entries(_read_block(data, index)):
        handle, _ = _read_handle(value, 0)
        if handle.offset < end:  # a block read many times could take forever
            raise ValueError("its blocks overlap")
        end = handle.end
        for key, content in _read_entries(_read_block(data, handle)):
            num_key_bytes += len(key)
            if num_key_bytes > MAX_KEY_BYTES or (last_key is not None and key <= last_key):
                raise ValueError("its keys are not in order")
            found[key] = content
            last_key = key
    return found


def _read_handle(data: bytes, position: int) -> tuple[_Handle, int]:
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return _Handle(offset, size), position


def _read_block(data: bytes, handle: _Handle) -> bytes:
    if handle.end > len(data) - FOOTER_BYTES:
        raise ValueError("a block is truncated")
    content = data[handle.offset : handle.offset + handle.size]
    kind = data[handle.offset + handle.size]
    stored = int.from_bytes(data[handle.end - 4 : handle.end], "little")
    if masked_crc32c(content + bytes([kind])) != stored:
        raise ValueError("the checksum of a block is wrong")
    if kind == SNAPPY:
        return decompress(content, max_bytes=MAX_BLOCK_BYTES)
    if kind != PLAIN:
        raise ValueError("a block is compressed in an unknown way")
    return content


def _read_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of a block; the offsets for binary search at its end are not needed."""
    num_restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * num_restarts
    if len(block) < 4 or end < 0:
        raise ValueError("a block is truncated")
    position, key = 0, b""
    while position < end:
        num_shared, position = read_varint(block, position)
        num_new, position = read_varint(block, position)
        num_value, position = read_varint(block, position)
        if num_shared > len(key) or position + num_new + num_value > end:
            raise ValueError("an entry of a block is truncated")
        key = key[:num_shared] + block[position : position + num_new]
        position += num_new
        yield key, block[position : position + num_value]
        position += num_value

"""The checksum of TensorFlow's files: CRC-32C (RFC 3720), masked as LevelDB does.

A checkpoint has gigabytes, so this works on many pieces of the data at once. The checksum is
linear: that of two pieces follows from the checksums of both, so pieces are combined in pairs.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

POLYNOMIAL = 0x82F63B78  # bits reversed
MASK_DELTA = 0xA282EAD8
PIECE_BYTES = 1 << 10
BLOCK_BYTES = 1 << 24


def masked_crc32c(data: bytes | memoryview | NDArray[np.uint8]) -> int:
    """Return the checksum as files store it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF


def crc32c(data: bytes | memoryview | NDArray[np.uint8]) -> int:
    """Return the CRC-32C of some bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    content = np.frombuffer(data, np.uint8)
    crc = 0xFFFFFFFF
    for start in range(0, len(content), BLOCK_BYTES):
        crc = _extend(crc, content[start : start + BLOCK_BYTES])
    return crc ^ 0xFFFFFFFF


def _extend(crc: int, block: NDArray[np.uint8]) -> int:
    """Return the checksum after one more block."""
    if len(block) < 4:
        for byte in block.tolist():
            crc = int(_two_byte_tables()[4][(crc ^ byte) & 0xFF]) ^ crc >> 8
        return crc
    num_pieces = 1
    while num_pieces * PIECE_BYTES < len(block):
        num_pieces *= 2
    # Zeros in front do not change the checksum of what follows, if it starts from zero.
    padded = np.zeros(num_pieces * PIECE_BYTES, np.uint8)
    padded[-len(block) :] = block
    first = len(padded) - len(block)
    padded[first : first + 4] ^= np.frombuffer(crc.to_bytes(4, "little"), np.uint8)
    pieces = _check_pieces(padded.view("<u4").reshape(num_pieces, -1, 2))
    num_bytes = PIECE_BYTES
    while len(pieces) > 1:
        pieces = _append_zeros(pieces[0::2], num_bytes) ^ pieces[1::2]
        num_bytes *= 2
    return int(pieces[0])


def _check_pieces(words: NDArray[np.uint32]) -> Words:
    """Return the checksum of each piece, from (pieces, steps, 2) words."""
    last, third, second, first, _ = _two_byte_tables()
    crcs = np.zeros(len(words), np.uint32)
    for step in range(words.shape[1]):
        one, two = words[:, step, 0] ^ crcs, words[:, step, 1]
        crcs = first[one & 0xFFFF] ^ second[one >> 16] ^ third[two & 0xFFFF] ^ last[two >> 16]
    return crcs


@lru_cache(maxsize=1)
def _two_byte_tables() -> tuple[Words, Words, Words, Words, Words]:
    """Return the checksums of two bytes with 0, 2, 4 and 6 zeros after them, and of one byte."""
    one: Words = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = one >> np.uint32(1) ^ (one & np.uint32(1)) * np.uint32(POLYNOMIAL)
    pairs = np.arange(1 << 16, dtype=np.uint32)
    half = one[pairs & 0xFF] ^ pairs >> 8
    tables = [one[half & 0xFF] ^ half >> 8]
    for _ in range(3):
        tables.append(tables[0][tables[-1] & 0xFFFF] ^ tables[-1] >> 16)
    return tables[0], tables[1], tables[2], tables[3], one


def _append_zeros(crcs: Words, num_bytes: int) -> Words:
    """Return checksums after `num_bytes` more zeros."""
    tables = _zero_tables(num_bytes)
    parts = [tables[position][crcs >> 8 * position & 0xFF] for position in range(4)]
    return parts[0] ^ parts[1] ^ parts[2] ^ parts[3]


@lru_cache(maxsize=64)
def _zero_tables(num_bytes: int) -> Words:
    """Return (4, 256): for each byte of a checksum, its share after `num_bytes` (a power of 2)."""
    values = np.arange(256, dtype=np.uint32)
    shares = np.stack([values << np.uint32(8 * position) for position in range(4)])
    if num_bytes == 2:
        return _two_byte_tables()[0][shares & 0xFFFF] ^ shares >> 16
    half = _append_zeros(shares, num_bytes // 2)
    return _append_zeros(half, num_bytes // 2)

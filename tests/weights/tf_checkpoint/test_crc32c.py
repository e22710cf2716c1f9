"""The checksum agrees with RFC 3720's examples and with the definition, bit by bit."""

import random

import numpy as np
import pytest

from elmore.weights.tf_checkpoint import crc32c as module
from elmore.weights.tf_checkpoint.crc32c import crc32c, masked_crc32c


def divide(data: bytes) -> int:
    """The remainder by its definition, one bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
    ],
)
def test_published_examples(data, expected):
    assert crc32c(data) == expected


@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 1023, 1024, 1025, 4097, 20_000])
def test_any_size_agrees_with_the_definition(size):
    data = random.Random(size).randbytes(size)
    assert crc32c(data) == crc32c(np.frombuffer(data, np.uint8)) == divide(data)


@pytest.mark.parametrize("size", [2047, 2048, 2049, 2050, 2051, 2052, 9001])
def test_blocks_are_joined(size, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 2048)
    data = random.Random(size).randbytes(size)
    assert crc32c(data) == divide(data)


def test_masked_as_in_leveldb():
    # The CRC rotated right by 15 bits, plus a constant.
    rotated = 0xE3069283 >> 15 | 0xE3069283 << 17
    assert masked_crc32c(b"123456789") == (rotated + 0xA282EAD8) % 2**32

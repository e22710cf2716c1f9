"""Snappy blocks that pyarrow compressed are read; damaged ones are refused."""

import random

import pytest

from elmore.weights.tf_checkpoint.snappy import decompress

pyarrow = pytest.importorskip("pyarrow")

TEXTS = [
    b"",
    b"a",
    b"lm/RNN_0/rnn/multi_rnn_cell/cell_0/lstm_cell/kernel" * 40,
    bytes(100_000),
    random.Random(0).randbytes(70_000),
    b"".join(random.Random(1).choice([b"lm/", b"softmax", b"Adagrad"]) for _ in range(9000)),
]


@pytest.mark.parametrize("text", TEXTS, ids=len)
def test_what_another_library_compressed(text):
    packed = pyarrow.compress(text, codec="snappy", asbytes=True)
    assert decompress(packed, max_bytes=1 << 20) == text


def test_a_declared_size_is_bounded():
    packed = pyarrow.compress(bytes(5000), codec="snappy", asbytes=True)
    with pytest.raises(ValueError, match="5,000 bytes"):
        decompress(packed, max_bytes=4999)


@pytest.mark.parametrize("text", TEXTS[2:], ids=len)
def test_damage_is_noticed_or_harmless(text):
    packed = pyarrow.compress(text, codec="snappy", asbytes=True)
    for seed in range(40):
        chance = random.Random(seed)
        damaged = bytearray(packed[: chance.randrange(1, len(packed))])
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            assert len(decompress(bytes(damaged), max_bytes=1 << 20)) <= 1 << 20
        except ValueError:
            continue


@pytest.mark.parametrize("packed", [b"", b"\x05\x00", b"\x08\x01\x01", b"\x02\xf0", b"\xff" * 12])
def test_small_damage(packed):
    with pytest.raises(ValueError, match=r"block|number"):
        decompress(packed, max_bytes=1 << 20)

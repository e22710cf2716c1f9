"""Vectors keep their bits in every form."""

import base64
import json

import numpy as np
import pytest

from elmore.serve import encoding


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(encoding, "NUMBERS_PER_PART", 8)


@pytest.mark.parametrize("shape", [(5,), (0, 4), (1, 4), (2, 4), (7, 4), (3, 5, 4), (2, 0, 4)])
def test_json_is_that_of_the_nested_list_and_keeps_the_bits(shape):
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 1e-3
    text = b"".join(encoding.encode_numbers(array))
    read = np.array(json.loads(text), dtype=np.float32)
    assert read.reshape(shape).tobytes() == array.tobytes()
    assert np.array(array.tolist()).shape == np.array(json.loads(text)).shape


def test_a_list_of_arrays():
    arrays = [np.ones((2, 2), np.float32), np.zeros((0, 2), np.float32)]
    text = b"".join(encoding.encode_list(arrays))
    assert json.loads(text) == [[[1, 1], [1, 1]], []]


@pytest.mark.parametrize(("dtype", "kind"), [("f32", "<f4"), ("f16", "<f2")])
def test_base64_is_little_endian(dtype, kind):
    array = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)[:, ::2]
    text = json.loads(encoding.encode_base64(array, dtype=dtype))
    read = np.frombuffer(base64.b64decode(text), kind).reshape(3, 2)
    assert np.array_equal(read, array.astype(kind))


def test_normalized_rows_have_length_one_and_zeros_stay():
    rows = encoding.normalize(np.array([[3, 4], [0, 0]], dtype=np.float32))
    assert rows.tolist() == [[np.float32(0.6), np.float32(0.8)], [0, 0]]
    assert rows.dtype == np.float32


def test_the_size_of_an_answer_is_about_right():
    array = np.random.default_rng(0).standard_normal((100, 100)).astype(np.float32)
    size = len(b"".join(encoding.encode_numbers(array)))
    assert 0.8 < size / encoding.count_bytes(array.size, form="json") < 1.1
    encoded = len(encoding.encode_base64(array, dtype="f16"))
    expected = encoding.count_bytes(array.size, form="base64", dtype="f16")
    assert 0.99 < encoded / expected < 1.01

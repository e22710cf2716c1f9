"""Vectors as JSON, base64 or bytes, in parts that can be sent one after another.

A part holds some hundred kilobytes, because other threads cannot run while one is made.
"""

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

Array = NDArray[Any]

NUMBERS_PER_PART = 50_000
JSON_BYTES_PER_NUMBER = 12
DTYPES: dict[str, np.dtype[Any]] = {"f32": np.dtype("<f4"), "f16": np.dtype("<f2")}


def encode_numbers(array: Array) -> Iterator[bytes]:
    """Yield nested JSON lists; reading them as single precision gives the same bits."""
    if array.ndim == 3:
        yield b"["
        for index, layer in enumerate(array):
            yield from [b","] if index else []
            yield from encode_numbers(layer)
        yield b"]"
        return
    if array.size <= NUMBERS_PER_PART or array.ndim == 1:
        yield orjson.dumps(np.ascontiguousarray(array), option=orjson.OPT_SERIALIZE_NUMPY)
        return
    rows = max(1, NUMBERS_PER_PART // array.shape[1])
    for start in range(0, len(array), rows):
        part = orjson.dumps(
            np.ascontiguousarray(array[start : start + rows]), option=orjson.OPT_SERIALIZE_NUMPY
        )
        yield (b"[" if start == 0 else b",") + part[1:-1]
    yield b"]"


def encode_list(arrays: "list[Array]") -> Iterator[bytes]:
    """Yield a JSON list of arrays."""
    yield b"["
    for index, array in enumerate(arrays):
        yield from [b","] if index else []
        yield from encode_numbers(array)
    yield b"]"


def encode_base64(array: Array, *, dtype: str = "f32") -> bytes:
    """Return the numbers, little-endian, as a JSON string."""
    return b'"' + base64.b64encode(encode_raw(array, dtype=dtype)) + b'"'


def encode_raw(array: Array, *, dtype: str = "f32") -> bytes:
    """Return the numbers, little-endian."""
    return np.ascontiguousarray(array, dtype=DTYPES[dtype]).tobytes()


def normalize(vectors: Array) -> Array:
    """Scale every row of (N, D) to length 1; a row of zeros is kept."""
    lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def count_bytes(num_numbers: int, *, form: str, dtype: str = "f32") -> int:
    """Return about how large an answer will be."""
    size = DTYPES[dtype].itemsize
    per_number = {"json": float(JSON_BYTES_PER_NUMBER), "base64": size * 4 / 3, "raw": float(size)}
    return int(num_numbers * per_number[form])

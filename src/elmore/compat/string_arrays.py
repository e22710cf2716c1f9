"""Strings as arrays of numbers, for libraries that have no string tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore import ElmoreError

LAST_CODE_POINT = 0x10FFFF


def encode_strings(strings: Sequence[Any] | NDArray[Any]) -> NDArray[np.int32]:
    """Return the Unicode code points of strings in an array of any shape, padded with 0.

    >>> encode_strings(["ab", "c"])
    array([[97, 98],
           [99,  0]], dtype=int32)
    """
    try:
        given = np.asarray(strings)
    except ValueError as error:
        raise ElmoreError(
            "got rows of different lengths; pad the shorter ones with empty strings"
        ) from error
    if not all(isinstance(text, str | bytes) for text in given.flat):
        raise ElmoreError(
            f"got {given.dtype} values where strings were expected; give a list or an array of "
            "strings"
        )
    # numpy stores fixed-width strings as 4 bytes per character, padded with zeros.
    texts = np.array([_read(text) for text in given.flat], dtype=np.str_)
    width = max(texts.dtype.itemsize // 4, 1)
    return texts.astype(f"<U{width}").view("<i4").reshape(*given.shape, width)


def decode_strings(array: NDArray[Any]) -> NDArray[Any]:
    """Return an object array of `str`, from strings, UTF-8 bytes or `encode_strings`.

    >>> decode_strings(encode_strings([["ab", "c"]]))
    array([['ab', 'c']], dtype=object)
    """
    shape = array.shape
    if array.dtype.kind in "iu":
        codes = array.astype(np.int64)
        if codes.size and not 0 <= codes.min() <= codes.max() <= LAST_CODE_POINT:
            raise ElmoreError(
                f"got numbers from {codes.min()} to {codes.max()} where characters were expected; "
                "make them with encode_strings"
            )
        shape = array.shape[:-1]
        array = np.ascontiguousarray(codes, dtype="<i4").view(f"<U{array.shape[-1]}")
    found = np.empty(array.size, dtype=object)
    found[:] = [_read(text) for text in array.flat]
    return found.reshape(shape)


def _read(text: str | bytes) -> str:
    if not isinstance(text, bytes):
        return str(text)
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ElmoreError(f"{text!r:.60} is not UTF-8; give strings in UTF-8") from error

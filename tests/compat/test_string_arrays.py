import numpy as np
import pytest

from elmore import ElmoreError
from elmore.compat.string_arrays import decode_strings, encode_strings

STRINGS = [["", "a b", " naïve "], ["日本語", "𝔘\t!", "\U0010ffff"]]


def test_decoding_gives_the_strings_back():
    codes = encode_strings(STRINGS)
    assert codes.dtype == np.int32
    assert codes.shape == (2, 3, 7)
    assert codes[0, 1].tolist() == [97, 32, 98, 0, 0, 0, 0]
    assert decode_strings(codes).tolist() == STRINGS
    assert decode_strings(codes.astype(np.int64)[:, ::2]).tolist() == [row[::2] for row in STRINGS]


@pytest.mark.parametrize("dtype", [object, np.str_])
def test_strings_and_their_bytes_are_read_alike(dtype):
    strings = np.array(STRINGS, dtype=dtype)
    assert decode_strings(strings).tolist() == STRINGS
    in_bytes = np.array([[text.encode() for text in row] for row in STRINGS])
    assert decode_strings(in_bytes).tolist() == STRINGS
    assert np.array_equal(encode_strings(in_bytes), encode_strings(strings))


@pytest.mark.parametrize("strings", [[], [""], [[]], [["", ""]]])
def test_without_any_character(strings):
    assert decode_strings(encode_strings(strings)).tolist() == strings


def test_other_values_are_refused():
    for values in ([1, 2], ["a", None], [1.5]):
        with pytest.raises(ElmoreError, match="where strings were expected"):
            encode_strings(values)
    with pytest.raises(ElmoreError, match="pad the shorter ones"):
        encode_strings([["a"], ["b", "c"]])
    for number in (-1, 0x110000):
        with pytest.raises(ElmoreError, match="make them with encode_strings"):
            decode_strings(np.array([[97, number]]))
    with pytest.raises(ElmoreError, match="not UTF-8"):
        decode_strings(np.array([b"\xff"]))

"""The key of a slice of a partitioned variable, in the encoding that keeps keys in order."""

from collections.abc import Sequence


def encode_slice(name: str, extents: Sequence[tuple[int, int]]) -> bytes:
    """Return the key of a slice; each extent is a start and a length, or 0 and -1 for all."""
    key = _encode_unsigned(0) + _encode_text(name.encode()) + _encode_unsigned(len(extents))
    return key + b"".join(_encode_signed(number) for extent in extents for number in extent)


def _encode_text(text: bytes) -> bytes:
    return text.replace(b"\x00", b"\x00\xff") + b"\x00\x01"


def _encode_unsigned(number: int) -> bytes:
    width = (number.bit_length() + 7) // 8
    return bytes([width]) + number.to_bytes(width, "big")


def _encode_signed(number: int) -> bytes:
    """Return the number with its length as leading one bits; negative numbers are inverted."""
    num_bits = (~number if number < 0 else number).bit_length()
    width = 1 + num_bits // 7
    # A marker bit per byte, moved to the front; exclusive-or keeps negative numbers before others.
    header = ((1 << width) - 1) << (8 * width - width)
    return ((number & ((1 << 8 * width) - 1)) ^ header).to_bytes(width, "big")

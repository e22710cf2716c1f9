"""Read protocol buffer messages field by field; ValueError if they are damaged."""

from collections.abc import Iterator

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number that starts at `position`, and the position after it."""
    number = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >= 1 << 64:
                break
            return number, position
    raise ValueError("a number is damaged")


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field."""
    position = 0
    while position < len(message):
        tag, position = read_varint(message, position)
        kind = tag & 7
        if kind == VARINT:
            value, position = read_varint(message, position)
            yield tag >> 3, value
            continue
        if kind == LENGTH:
            width, position = read_varint(message, position)
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            width = 8 if kind == EIGHT_BYTES else 4
        else:
            raise ValueError("a field has an unknown kind")
        if position + width > len(message):
            raise ValueError("a field is truncated")
        content = message[position : position + width]
        position += width
        yield tag >> 3, content if kind == LENGTH else int.from_bytes(content, "little")


def expect_int(value: int | bytes) -> int:
    """Return a field's number."""
    if isinstance(value, bytes):
        raise ValueError("a field has the wrong kind")  # noqa: TRY004  of the file, not of Python
    return value


def expect_bytes(value: int | bytes) -> bytes:
    """Return a field's bytes."""
    if isinstance(value, int):
        raise ValueError("a field has the wrong kind")  # noqa: TRY004
    return value

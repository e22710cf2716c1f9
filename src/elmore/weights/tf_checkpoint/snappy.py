"""Decompress a block of Google's Snappy format; checkpoints of TensorFlow 1.0 and 1.1 use it."""

from elmore.weights.tf_checkpoint.wire import read_varint


def decompress(data: bytes, *, max_bytes: int) -> bytes:
    """Return the content of a block of at most `max_bytes`; ValueError if it is damaged."""
    size, position = read_varint(data, 0)
    if size > max_bytes:
        raise ValueError(f"a block declares {size:,} bytes")
    output = bytearray()
    while position < len(data):
        tag = data[position]
        position += 1
        kind, length = tag & 3, tag >> 2
        if kind == 0:
            if length >= 60:
                width = length - 59
                length = int.from_bytes(data[position : position + width], "little")
                position += width
            length += 1
            output += data[position : position + length]
            if position + length > len(data):
                raise ValueError("a compressed block is truncated")
            position += length
        else:
            if kind == 1:
                length, offset, width = 4 + (length & 7), (tag >> 5) << 8, 1
            else:
                length, offset, width = length + 1, 0, 2 if kind == 2 else 4
            offset += int.from_bytes(data[position : position + width], "little")
            position += width
            if not 0 < offset <= len(output):
                raise ValueError("a compressed block refers to bytes before its start")
            # A copy may overlap what it writes: it then repeats the last `offset` bytes.
            source = bytes(output[-offset:])
            output += (source * (length // offset + 1))[:length]
        if len(output) > size:
            break
    if len(output) != size:
        raise ValueError(f"a block declares {size:,} bytes but has another size")
    return bytes(output)

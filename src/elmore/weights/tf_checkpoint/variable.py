"""The entries of a checkpoint's index: type, shape and position of a variable, or its slices."""

from collections.abc import Sequence
from dataclasses import dataclass

from elmore.weights.tf_checkpoint.wire import expect_bytes, expect_int, read_fields

Shape = tuple[int, ...]
Slice = tuple[tuple[int, int], ...]
"""A start and a length for each dimension."""

ALL = -1  # as a length
MAX_DIMENSIONS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Variable:
    """Where the numbers of a variable or of one of its slices are."""

    dtype: int
    shape: Shape
    data_file: int
    offset: int
    num_bytes: int
    checksum: int
    slices: tuple[Slice, ...] = ()  # if partitioned


def read_variable(message: bytes) -> Variable:
    """Read an entry of the index; ValueError if it is damaged."""
    numbers = {1: 0, 3: 0, 4: 0, 5: 0, 6: 0}
    shape: Shape = ()
    slices = []
    for field, value in read_fields(message):
        if field == 2:
            shape = _read_shape(expect_bytes(value))
        elif field == 7:
            slices.append(_read_slice(expect_bytes(value)))
        elif field in numbers:
            numbers[field] = expect_int(value)
    return Variable(
        dtype=numbers[1],
        shape=shape,
        data_file=numbers[3],
        offset=numbers[4],
        num_bytes=numbers[5],
        checksum=numbers[6],
        slices=tuple(slices),
    )


def _read_shape(message: bytes) -> Shape:
    sizes = [
        expect_int(dict(read_fields(expect_bytes(value))).get(1, 0))
        for field, value in read_fields(message)
        if field == 2
    ]
    if len(sizes) > MAX_DIMENSIONS:
        raise ValueError("a variable has too many dimensions")
    return tuple(sizes)


def _read_slice(message: bytes) -> Slice:
    """Return the start and length of each dimension."""
    extents = []
    for field, value in read_fields(message):
        if field == 1:
            values = dict(read_fields(expect_bytes(value)))
            extents.append((expect_int(values.get(1, 0)), expect_int(values.get(2, ALL))))
    return tuple(extents)


def order_slices(slices: Sequence[Slice], shape: Shape) -> list[Slice]:
    """Return the slices in order; ValueError if they do not cover the shape exactly once.

    TensorFlow cuts a variable along one axis.
    """
    if not shape or any(len(extents) != len(shape) for extents in slices):
        raise ValueError("has slices with another number of dimensions")
    axes = {
        axis
        for extents in slices
        for axis, (start, length) in enumerate(extents)
        if (start, length) not in ((0, ALL), (0, shape[axis]))
    }
    axis = axes.pop() if axes else 0
    ordered = sorted(slices, key=lambda extents: extents[axis])
    end = 0
    for extents in ordered:
        start, length = extents[axis]
        if start != end or (length < 1 and length != ALL) or axes:
            raise ValueError("is not cut along one axis without gaps")
        end += shape[axis] if length == ALL else length
    if end != shape[axis]:
        raise ValueError("lacks a part")
    return ordered

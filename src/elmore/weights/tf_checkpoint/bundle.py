"""The variables of a checkpoint: `PREFIX.index` names them, `PREFIX.data-*` hold their numbers.

Each variable, and each slice of a partitioned one, has a checksum, which is verified.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmore.errors import ModelError
from elmore.files.untrusted import check_file, read_bounded
from elmore.weights.tf_checkpoint.crc32c import masked_crc32c
from elmore.weights.tf_checkpoint.slice_key import encode_slice
from elmore.weights.tf_checkpoint.sorted_table import read_table
from elmore.weights.tf_checkpoint.variable import Shape, Variable, order_slices, read_variable
from elmore.weights.tf_checkpoint.wire import expect_int, read_fields

FloatArray = NDArray[np.float32]

SINGLE_PRECISION = 1  # TensorFlow's number of the type
MAX_INDEX_BYTES = 1 << 24
MAX_DATA_FILES = 1000


class VariableFiles:
    """The index of a checkpoint; numbers are read on demand."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        index = prefix.with_name(f"{prefix.name}.index")
        content = read_bounded(index, max_bytes=MAX_INDEX_BYTES)
        try:
            table = read_table(content)
            self._num_data_files = _count_data_files(table.pop(b"", None))
            self._variables = {key: read_variable(value) for key, value in table.items()}
        except ValueError as error:
            raise ModelError(
                f"{index} is not a complete TensorFlow checkpoint ({error}); copy it again"
            ) from error

    def __str__(self) -> str:
        """Return the name of the checkpoint for messages."""
        return str(self.prefix)

    def find(self, name: str) -> Variable | None:
        """Return the entry of a variable."""
        return self._variables.get(name.encode())

    def read(self, shapes: Mapping[str, Shape]) -> dict[str, FloatArray]:
        """Check the types, shapes and sizes of all named variables, then read them."""
        parts = {name: list(self._find_parts(name, shape)) for name, shape in shapes.items()}
        sizes = [check_file(self._data_path(number)) for number in range(self._num_data_files)]
        for variable in (part for found in parts.values() for _, part in found):
            if variable.offset + variable.num_bytes > sizes[variable.data_file]:
                raise self._damage("a data file is truncated")
        declared = sum(variable.num_bytes for found in parts.values() for _, variable in found)
        if declared > sum(sizes):  # variables could share bytes
            raise self._damage(f"its variables declare {declared:,} bytes, more than its files")
        return {name: self._assemble(name, shape, parts[name]) for name, shape in shapes.items()}

    def _find_parts(self, name: str, shape: Shape) -> Iterator[tuple[tuple[slice, ...], Variable]]:
        """Yield where each part of a variable belongs, and its entry."""
        variable = self.find(name)
        if variable is None:
            raise ModelError(
                f"{self} lacks the variable {name!r}, which its options require; give the "
                "options.json of this checkpoint"
            )
        if variable.shape != shape:
            raise ModelError(
                f"{self}: {name!r} has shape {variable.shape}, expected {shape}; give the options, "
                "and the vocabulary if there is one, that belong to this checkpoint"
            )
        if not variable.slices:
            self._check_numbers(name, variable, shape)
            yield (), variable
            return
        try:
            ordered = order_slices(variable.slices, shape)
        except ValueError as error:
            raise self._damage(f"{name!r:.60} {error}") from error
        for extents in ordered:
            found = self._variables.get(encode_slice(name, extents))
            if found is None:
                raise self._damage(f"{name!r:.60} lacks a slice")
            position = tuple(
                slice(start, start + length) if length >= 0 else slice(0, size)
                for (start, length), size in zip(extents, shape, strict=True)
            )
            self._check_numbers(name, found, tuple(part.stop - part.start for part in position))
            yield position, found

    def _check_numbers(self, name: str, variable: Variable, shape: Shape) -> None:
        if variable.dtype != SINGLE_PRECISION:
            raise ModelError(
                f"{self}: {name!r} is not in single precision (its type is number "
                f"{variable.dtype}); save the checkpoint in float32"
            )
        if variable.num_bytes != 4 * prod(shape) or variable.shape not in (shape, ()):
            raise self._damage(f"{name!r:.60} has the wrong size")
        if not 0 <= variable.data_file < self._num_data_files:
            raise self._damage(f"{name!r:.60} is in a data file that does not exist")

    def _assemble(
        self, name: str, shape: Shape, parts: Sequence[tuple[tuple[slice, ...], Variable]]
    ) -> FloatArray:
        if len(parts) == 1:
            return self._read_numbers(name, parts[0][1]).reshape(shape)
        whole = np.empty(shape, np.float32)
        for position, variable in parts:
            whole[position] = self._read_numbers(name, variable).reshape(whole[position].shape)
        return whole

    def _read_numbers(self, name: str, variable: Variable) -> FloatArray:
        path = self._data_path(variable.data_file)
        try:
            with path.open("rb") as file:
                raw = np.fromfile(file, np.uint8, count=variable.num_bytes, offset=variable.offset)
        except OSError as error:
            raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error
        if len(raw) != variable.num_bytes or masked_crc32c(raw) != variable.checksum:
            raise self._damage(f"the checksum of {name!r:.60} is wrong")
        numbers = raw.view("<f4").astype(np.float32, copy=False)
        if not np.isfinite(numbers).all():
            raise ModelError(
                f"{self}: {name!r:.60} has numbers that are not finite; copy the checkpoint again"
            )
        return numbers

    def _data_path(self, number: int) -> Path:
        ending = f".data-{number:05d}-of-{self._num_data_files:05d}"
        return self.prefix.with_name(self.prefix.name + ending)

    def _damage(self, reason: str) -> ModelError:
        return ModelError(
            f"{self} is not a complete TensorFlow checkpoint ({reason}); copy it again"
        )


def _count_data_files(header: bytes | None) -> int:
    """Read the header of a bundle."""
    if header is None:
        raise ValueError("its header is missing")
    values = dict(read_fields(header))
    number = expect_int(values.get(1, 0))
    if not 1 <= number <= MAX_DATA_FILES:
        raise ValueError(f"it has {number:,} data files")
    if values.get(2, 0) != 0:
        raise ValueError("its numbers are big-endian")
    return number

"""Encode single tokens: character filters by table, highway and linear layers.

Shapes: U tokens, C characters, S units in a table, F filters of width w.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor

from elmore.config import Precision
from elmore.kernels.library import Kernel, load_kernel
from elmore.kernels.packed import (
    CODES,
    PackedMatrix,
    check,
    check_floats,
    interleave_numbers,
    narrow,
)
from elmore.kernels.threads import run_together, split_evenly

# Below this many rows, threads cost more than they save.
MIN_ROWS_PER_THREAD = 16

# The same for the products of all rows with all weights, about 0.1 ms of work.
MIN_PRODUCTS = 1 << 24

# And for the responses of filters.
MIN_RESPONSES = 1 << 14


class PackedLinear:
    """A linear layer, packed for the kernel."""

    def __init__(
        self, kernel: Kernel, weight: Tensor, bias: Tensor, *, precision: Precision
    ) -> None:
        self.precision = narrow(precision, weight.detach())
        self.matrix, self.bias = _pack_linear(kernel, weight, bias, precision=self.precision)

    def apply(self, x: Tensor) -> Tensor:
        """Map (U, I) to (U, O)."""
        kernel = load_kernel(self.matrix.kernel_name)
        return multiply_rows(kernel, self.matrix, x, self.bias, precision=self.precision)


def _pack_linear(
    kernel: Kernel, weight: Tensor, bias: Tensor, *, precision: Precision
) -> tuple[PackedMatrix, Tensor]:
    check_floats("a bias", bias, (len(weight),))
    return PackedMatrix(kernel, weight, precision=precision), bias.detach().clone()


def multiply_rows(
    kernel: Kernel,
    matrix: PackedMatrix,
    x: Tensor,
    bias: Tensor,
    *,
    precision: Precision = Precision.F32,
    out: Tensor | None = None,
) -> Tensor:
    """Return the products of (U, I) with a packed (O, I), plus a bias (O,): (U, O)."""
    check_floats("vectors", x, (len(x), matrix.num_inputs))
    x, bias = x.detach().contiguous(), bias.detach().contiguous()
    outputs = x.new_empty((len(x), len(bias))) if out is None else out
    check_floats("outputs", outputs, (len(x), len(bias)))
    assert outputs.is_contiguous()

    def apply_to(rows: slice, panels: slice) -> None:
        check(
            kernel.functions.elmore_linear(
                CODES[precision],
                matrix.pointer(),
                bias.data_ptr(),
                x[rows].data_ptr(),
                rows.stop - rows.start,
                outputs[rows].data_ptr(),
                len(bias),
                panels.start,
                panels.stop,
            )
        )

    _run_by_tiles(apply_to, len(x), matrix)
    return outputs


class PackedHighway:
    """A highway layer, packed for the kernel; its two matrices are packed into one."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        transform: Iterable[Tensor],
        gate: Iterable[Tensor],
        precision: Precision,
    ) -> None:
        """Pack two layers, each given as its weight and its bias.

        The gate is taken and packed first, in case both are read from a file.
        """
        if precision is Precision.F32:  # to narrow it, both are needed at once
            gate, transform = list(gate), list(transform)
            precision = narrow(precision, gate[0].detach(), transform[0].detach())
        self.precision = precision
        gates, gate_bias = _pack_linear(kernel, *gate, precision=precision)
        del gate
        transforms, bias = _pack_linear(kernel, *transform, precision=precision)
        del transform
        self.matrix = PackedMatrix.join([transforms, gates])
        self.bias = interleave_numbers(
            torch.cat([bias, gate_bias]), num_parts=2, panel=kernel.panel
        )

    def apply(self, x: Tensor) -> Tensor:
        """Map (U, F) to (U, F)."""
        kernel = load_kernel(self.matrix.kernel_name)
        check_floats("vectors", x, (len(x), self.matrix.num_inputs))
        x = x.detach().contiguous()
        outputs = torch.empty_like(x)

        def apply_to(rows: slice, panels: slice) -> None:
            check(
                kernel.functions.elmore_highway(
                    CODES[self.precision],
                    self.matrix.pointer(),
                    self.bias.data_ptr(),
                    x[rows].data_ptr(),
                    rows.stop - rows.start,
                    outputs[rows].data_ptr(),
                    panels.start,
                    panels.stop,
                )
            )

        _run_by_tiles(apply_to, len(x), self.matrix, multiple_of=2)
        return outputs


def find_strongest(
    kernel: Kernel,
    unit_ids: Tensor,
    num_positions: Tensor,
    tables: Sequence[Tensor],
    *,
    with_winners: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """Return the (U, F) maximum responses of all tables and, if asked, their windows.

    `unit_ids` (U, C) must be valid for every table (w, S, F); this is not checked here.
    """
    unit_ids = unit_ids.to(torch.int32).contiguous()
    num_positions = num_positions.to(torch.int32).contiguous()
    for table in tables:
        check_floats("a table", table, table.shape)
    tables = [table.detach().contiguous() for table in tables]
    ends = list(accumulate((table.shape[2] for table in tables), initial=0))
    strongest = tables[0].new_empty((len(unit_ids), ends[-1]))
    winners = [
        unit_ids.new_empty((len(unit_ids), table.shape[2])) for table in tables if with_winners
    ]

    def find_in(rows: slice) -> None:
        for number, table in enumerate(tables):
            check(
                kernel.functions.elmore_strongest(
                    unit_ids[rows].data_ptr(),
                    num_positions[rows].data_ptr(),
                    rows.stop - rows.start,
                    unit_ids.shape[1],
                    table.data_ptr(),
                    *table.shape,
                    strongest[rows, ends[number] :].data_ptr(),
                    ends[-1],
                    winners[number][rows].data_ptr() if with_winners else None,
                )
            )

    run_by_rows(find_in, len(unit_ids), least=max(1, MIN_RESPONSES // ends[-1]))
    return strongest, winners


def scatter_gradient(
    kernel: Kernel, unit_ids: Tensor, winners: Tensor, gradient: Tensor, table_shape: torch.Size
) -> Tensor:
    """Return the (w, S, F) gradient of a table, given the (U, F) gradient of the responses."""
    unit_ids = unit_ids.to(torch.int32).contiguous()
    width, num_units, num_filters = table_shape
    check_floats("a gradient", gradient, (len(unit_ids), num_filters))
    gradient = gradient.contiguous()
    table_gradient = gradient.new_zeros(table_shape)
    check(
        kernel.functions.elmore_scatter(
            unit_ids.data_ptr(),
            *unit_ids.shape,
            winners.data_ptr(),
            gradient.data_ptr(),
            num_filters,
            width,
            num_units,
            num_filters,
            table_gradient.data_ptr(),
        )
    )
    return table_gradient


def _run_by_tiles(
    work: Callable[[slice, slice], None],
    num_rows: int,
    matrix: PackedMatrix,
    *,
    multiple_of: int = 1,
) -> None:
    """Split rows, or the panels of the matrix if there are few rows, among threads.

    The split does not change the results. With few rows, most of the time goes into loading the
    weights, and each thread loads only those of its panels.
    """
    all_panels = slice(0, matrix.num_panels)
    num_products = num_rows * matrix.num_inputs * matrix.num_panels * matrix.panel
    if num_rows >= 2 * MIN_ROWS_PER_THREAD or num_products < MIN_PRODUCTS:
        run_by_rows(lambda rows: work(rows, all_panels), num_rows)
        return
    groups = split_evenly(matrix.num_panels // multiple_of)
    parts = [slice(group.start * multiple_of, group.stop * multiple_of) for group in groups]
    run_together(*(partial(work, slice(0, num_rows), part) for part in parts))


def run_by_rows(
    work: Callable[[slice], None], num_rows: int, *, least: int = MIN_ROWS_PER_THREAD
) -> None:
    """Split the rows among threads; the split does not change the results."""
    parts = split_evenly(num_rows, least=least)
    run_together(*(partial(work, rows) for rows in parts))

"""Encode single tokens: character filters by table, highway and linear layers.

Shapes: U tokens, C characters, S units in a table, F filters of width w.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor

from elmore.config import Precision
from elmore.kernels.library import Kernel, load_kernel
from elmore.kernels.packed import CODES, PackedMatrix, check, check_floats, interleave_numbers
from elmore.kernels.threads import run_together, split_evenly

# Below this many rows, threads cost more than they save.
MIN_ROWS_PER_THREAD = 16


class PackedLinear:
    """A linear layer, packed for the kernel."""

    def __init__(
        self, kernel: Kernel, weight: Tensor, bias: Tensor, *, precision: Precision
    ) -> None:
        self.matrix = PackedMatrix(kernel, weight, precision=precision)
        check_floats("a bias", bias, (len(weight),))
        self.bias = bias.detach().clone()
        self.precision = precision

    def apply(self, x: Tensor) -> Tensor:
        """Map (U, I) to (U, O)."""
        kernel = load_kernel(self.matrix.kernel_name)
        check_floats("vectors", x, (len(x), self.matrix.num_inputs))
        x = x.detach().contiguous()
        num_outputs = len(self.bias)
        outputs = x.new_empty((len(x), num_outputs))

        def apply_to(rows: slice) -> None:
            check(
                kernel.functions.elmore_linear(
                    CODES[self.precision],
                    self.matrix.pointer(),
                    self.bias.data_ptr(),
                    x[rows].data_ptr(),
                    rows.stop - rows.start,
                    outputs[rows].data_ptr(),
                    num_outputs,
                )
            )

        _run_by_rows(apply_to, len(x))
        return outputs


class PackedHighway:
    """A highway layer, packed for the kernel; its two matrices are packed into one."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        transform: tuple[Tensor, Tensor],
        gate: tuple[Tensor, Tensor],
        precision: Precision,
    ) -> None:
        weight, bias = (
            torch.cat([a.detach(), b.detach()]) for a, b in zip(transform, gate, strict=True)
        )
        self.matrix = PackedMatrix(kernel, weight, precision=precision, num_parts=2)
        self.bias = interleave_numbers(bias, num_parts=2, panel=kernel.panel)
        self.precision = precision

    def apply(self, x: Tensor) -> Tensor:
        """Map (U, F) to (U, F)."""
        kernel = load_kernel(self.matrix.kernel_name)
        check_floats("vectors", x, (len(x), self.matrix.num_inputs))
        x = x.detach().contiguous()
        outputs = torch.empty_like(x)

        def apply_to(rows: slice) -> None:
            check(
                kernel.functions.elmore_highway(
                    CODES[self.precision],
                    self.matrix.pointer(),
                    self.bias.data_ptr(),
                    x[rows].data_ptr(),
                    rows.stop - rows.start,
                    outputs[rows].data_ptr(),
                )
            )

        _run_by_rows(apply_to, len(x))
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

    _run_by_rows(find_in, len(unit_ids))
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


def _run_by_rows(work: Callable[[slice], None], num_rows: int) -> None:
    """Split the rows among threads; the split does not change the results."""
    parts = split_evenly(num_rows, least=MIN_ROWS_PER_THREAD)
    run_together(*(partial(work, rows) for rows in parts))

"""The character convolution by table lookup: a response is a sum of rows, not a product.

Each position of a token has one of a few hundred units, so the response of a filter of width w to a
window is the sum of w numbers that each depend on one unit. These products are computed once per
unit, stored in a table, and looked up for every window. All windows that contain only filler give
the same response, so only the first of them is computed.

Shapes: U tokens, C characters, E char dim, S units, F filters of width w.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elmore.kernels.library import Kernel, find_kernel_for
from elmore.kernels.tokens import find_strongest, scatter_gradient
from elmore.model.rows import ROW_BLOCK, extend_rows, extend_weight, multiply, round_up

# Responses in memory at a time, for calls of any size: 2 MB in float32. More would leave the CPU's
# cache before the maximum is taken; with fewer, the overhead per operation dominates.
NUMBERS_AT_ONCE = 2**19


def count_positions(char_ids: Tensor) -> Tensor:
    """Return the (U,) number of relevant window starts in (U, C) ids: content, and one of filler.

    Filler is the longest run of one id at the end of a token.

    >>> count_positions(torch.tensor([[7, 8, 0, 0], [7, 8, 9, 0], [0, 0, 0, 0]])).tolist()
    [3, 4, 1]
    """
    is_content = char_ids != char_ids[:, -1:]
    ends = torch.arange(1, char_ids.shape[1] + 1, device=char_ids.device)
    return (is_content * ends).amax(dim=1) + 1


def number_distinct(char_ids: Tensor, *, num_units: int) -> tuple[Tensor, Tensor]:
    """Return the (S,) distinct units, ascending, and the (U, C) index of each id among them.

    >>> [ids.tolist() for ids in number_distinct(torch.tensor([[7, 2, 7]]), num_units=9)]
    [[2, 7], [[1, 0, 1]]]
    """
    occurs = torch.zeros(num_units, dtype=torch.bool, device=char_ids.device)
    occurs[char_ids] = True
    numbers = occurs.cumsum(dim=0) - 1
    return occurs.nonzero().squeeze(1), numbers[char_ids]


def make_tables(units: Tensor, filters: Sequence[Tensor], *, widths: Sequence[int]) -> list[Tensor]:
    """Multiply (S, E) units with each (F, w * E) filter: (w, S, F), S padded to whole blocks."""
    units = extend_rows(units, round_up(len(units), ROW_BLOCK))
    tables = []
    with torch.autocast(units.device.type, enabled=False):  # these are sums of few numbers
        for width, weight in zip(widths, filters, strict=True):
            num_filters = len(weight)
            slices = weight.unflatten(1, (width, -1)).transpose(0, 1).flatten(0, 1)  # (w * F, E)
            product = multiply(units, extend_weight(slices), num_outputs=len(slices))
            table = product.unflatten(1, (width, num_filters)).transpose(0, 1)
            tables.append(table.contiguous())
    return tables


@dataclass(frozen=True, kw_only=True)
class KeptTables:
    """The tables of all units, and a copy of the weights they were made from."""

    weights: Sequence[Tensor]
    tables: Sequence[Tensor]

    def fit(self, weights: Sequence[Tensor]) -> bool:
        """Return whether the weights are unchanged.

        They are compared by value, which is fast compared with making tables. A tensor's version
        counter misses writes through `.data` or a numpy array, and addresses are reused.
        """
        return all(
            kept.dtype == weight.dtype and kept.device == weight.device and kept.equal(weight)
            for kept, weight in zip(self.weights, weights, strict=True)
        )


def strongest_responses(
    unit_ids: Tensor, num_positions: Tensor, tables: Sequence[Tensor]
) -> Tensor:
    """Return the (U, F) maximum over a token's windows of the sum of their units' rows.

    `unit_ids` (U, C) are indices into each of the `tables` (w, S, F), whose filters are
    concatenated in the result. `num_positions` (U,) comes from `count_positions`; windows that
    would end after C are not used. A window's rows are added in the order of its units, so the bits
    of a token do not depend on other tokens.

    The tables get the gradient. If windows tie for the maximum, torch splits the gradient evenly
    and the native kernel gives it to the first; usually they have the same units, so the same rows.
    """
    longest = max(len(table) for table in tables)
    if longest > unit_ids.shape[1]:
        raise ValueError(
            f"expected tokens of at least {longest} characters, the widest filter, "
            f"got {unit_ids.shape[1]}"
        )
    kernel = find_kernel_for(tables)
    needs_gradient = torch.is_grad_enabled() and any(table.requires_grad for table in tables)
    if kernel is None:
        find = _StrongestResponses.apply if needs_gradient else _find_strongest
        return torch.cat([find(unit_ids, num_positions, table) for table in tables], dim=1)
    if needs_gradient:
        return _NativeStrongestResponses.apply(kernel, unit_ids, num_positions, *tables)  # type: ignore[no-untyped-call]
    return find_strongest(kernel, unit_ids, num_positions, tables)[0]


class _NativeStrongestResponses(torch.autograd.Function):
    """Saves which window has the maximum; its units get the gradient of the response."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, unit_ids: Tensor, num_positions: Tensor, *tables: Tensor
    ) -> Tensor:
        strongest, winners = find_strongest(
            kernel, unit_ids, num_positions, tables, with_winners=True
        )
        ctx.save_for_backward(unit_ids, *winners)
        ctx.kernel, ctx.table_shapes = kernel, [table.shape for table in tables]
        return strongest

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        unit_ids, *winners = ctx.saved_tensors
        parts = gradient.split([shape[2] for shape in ctx.table_shapes], dim=1)
        return (
            None,
            None,
            None,
            *(
                scatter_gradient(ctx.kernel, unit_ids, won, part, shape)
                for won, part, shape in zip(winners, parts, ctx.table_shapes, strict=True)
            ),
        )


def _find_strongest(unit_ids: Tensor, num_positions: Tensor, table: Tensor) -> Tensor:
    strongest = table.new_full((len(unit_ids), table.shape[2]), -torch.inf)
    for tokens, owners, windows in _cut_windows(unit_ids, num_positions, table.shape):
        _raise_to(strongest[tokens], owners, _respond(windows, table))
    return strongest


class _StrongestResponses(torch.autograd.Function):
    """Recomputes the responses in the backward pass; saving them all would take far more memory."""

    @staticmethod
    def forward(ctx: Any, unit_ids: Tensor, num_positions: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(unit_ids, num_positions, table)
        return _find_strongest(unit_ids, num_positions, table)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        unit_ids, num_positions, table = ctx.saved_tensors
        collected = torch.zeros_like(table).flatten(0, 1)
        for tokens, owners, windows in _cut_windows(unit_ids, num_positions, table.shape):
            received = gradient[tokens]
            responses = _respond(windows, table)
            strongest = _raise_to(torch.full_like(received, -torch.inf), owners, responses)
            is_strongest = responses.eq_(strongest.index_select(0, owners))  # as 0.0 and 1.0
            num_tied = torch.zeros_like(received).index_add_(0, owners, is_strongest)
            shares = is_strongest.mul_((received / num_tied).index_select(0, owners))
            # The gradient of a table row is again a sum of rows: those of its windows.
            rows, order = windows.flatten().sort(stable=True)
            rows, counts = rows.unique_consecutive(return_counts=True)
            sums = functional.embedding_bag(
                order // windows.shape[1], shares, counts.cumsum(dim=0) - counts, mode="sum"
            )
            collected.index_add_(0, rows, sums)
        return None, None, collected.view_as(table)


def _cut_windows(
    unit_ids: Tensor, num_positions: Tensor, table_shape: Sequence[int]
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield P windows at a time: a slice of tokens, (P,) tokens in it, (P, w) table rows."""
    width, num_units, num_filters = table_shape
    num_starts = unit_ids.shape[1] - width + 1
    num_positions = num_positions.clamp(max=num_starts)
    parts = num_positions.cumsum(dim=0) // max(1, NUMBERS_AT_ONCE // num_filters)
    starts = torch.arange(num_starts, device=unit_ids.device)
    slices = torch.arange(width, dtype=unit_ids.dtype, device=unit_ids.device) * num_units
    end = 0
    for num_tokens in parts.unique_consecutive(return_counts=True)[1].tolist():
        tokens = slice(end, end + num_tokens)
        end = tokens.stop
        owners, offsets = (starts < num_positions[tokens].unsqueeze(1)).nonzero(as_tuple=True)
        yield tokens, owners, unit_ids[tokens].unfold(1, width, 1)[owners, offsets] + slices


def _respond(windows: Tensor, table: Tensor) -> Tensor:
    """Sum the table rows of (P, w) windows: (P, F)."""
    return functional.embedding_bag(windows, table.flatten(0, 1), mode="sum")


def _raise_to(strongest: Tensor, owners: Tensor, responses: Tensor) -> Tensor:
    """Update each token's row in place with the maximum of its (P, F) responses."""
    owners = owners.unsqueeze(1).expand_as(responses)
    return strongest.scatter_reduce_(0, owners, responses, "amax")

"""The summed loss of a softmax and its gradients, computed together, some rows at a time.

Shapes: N tokens to predict, D the output of one direction, V words, C candidates (all V words, or
the negatives), U distinct words among candidates and targets.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elmore.config import Precision
from elmore.kernels.library import Kernel
from elmore.kernels.packed import PackedMatrix
from elmore.kernels.products import find_product_kernel, multiply_packed
from elmore.kernels.scratch import borrow
from elmore.kernels.softmax import take_exponents
from elmore.kernels.tokens import multiply_rows
from elmore.model.sampling import Negatives

# A block of logits: enough rows for matrix products, few enough for the CPU's cache.
_MAX_ROWS, _MIN_ROWS = 512, 32
_MAX_LOGITS = 1 << 24
# The numbers of candidates' vectors that are worth two packed copies.
MAX_PACKED = 1 << 24


def choose_rows(num_candidates: int) -> int:
    """Return how many rows of logits are in memory at a time."""
    return min(_MAX_ROWS, max(_MIN_ROWS, _MAX_LOGITS // max(1, num_candidates)))


def sum_losses(
    outputs: Tensor,
    targets: Tensor,
    *,
    weight: Tensor,
    bias: Tensor,
    negatives: Negatives | None = None,
    rows_at_once: int | None = None,
    precision: Precision = Precision.F32,
) -> Tensor:
    """Sum -log p of (N,) targets given (N, D) outputs, over all words or against negatives.

    The gradients of weight and bias are dense without negatives. With negatives they are sparse,
    with distinct words in ascending order. `precision` is that of the gradients' products in the
    native kernel; the loss is always computed in f32.
    """
    return _SummedLoss.apply(  # type: ignore[no-untyped-call]
        outputs,
        weight,
        bias,
        targets,
        negatives,
        rows_at_once,
        precision,
        torch.is_grad_enabled(),
    )


class _SummedLoss(torch.autograd.Function):
    """Computes gradients in the forward pass, so that no logits are saved for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        outputs: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        negatives: Negatives | None,
        rows_at_once: int | None,
        precision: Precision,
        has_gradient: bool,
    ) -> Tensor:
        needs_outputs, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        # Autocast would round the products, and with them small differences in the loss.
        with torch.autocast(outputs.device.type, enabled=False):
            sums = _pass_over_rows(
                outputs,
                targets,
                weight=weight,
                bias=bias,
                candidates=_choose_candidates(weight, bias, targets, negatives),
                rows_at_once=rows_at_once,
                precision=precision,
                for_outputs=has_gradient and needs_outputs,
                for_words=has_gradient and (needs_weight or needs_bias),
            )
            words, vectors, biases = _gather_words(sums, outputs, targets, negatives)
        ctx.size = weight.shape
        ctx.save_for_backward(sums.outputs, words, vectors, biases)
        return sums.loss

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> Any:
        outputs, words, vectors, biases = ctx.saved_tensors
        needs_outputs, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        grads: list[Tensor | None] = [outputs * scale if needs_outputs else None, None, None]
        for index, needed, values in ((1, needs_weight, vectors), (2, needs_bias, biases)):
            if needed:
                scaled = values * scale
                grads[index] = scaled if words is None else _make_sparse(words, scaled, ctx.size)
        return (*grads, None, None, None, None, None)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Candidates:
    weight: Tensor  # (C, D)
    bias: Tensor  # (C,), corrected
    columns: Tensor  # (N,) int64, index of the target among the candidates, or -1


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sums:
    loss: Tensor  # ()
    outputs: Tensor | None  # (N, D) gradient
    candidates: Tensor | None  # (C, D) gradient, without the targets' part
    biases: Tensor | None  # (C,) gradient, without the targets' part
    own: Tensor  # (N,) gradient of the target's logit, p - 1


class _Products:
    """The products of a block of rows with the candidates, by torch."""

    def __init__(self, candidates: _Candidates) -> None:
        self.weight, self.bias = candidates.weight, candidates.bias

    def logits(self, x: Tensor, *, out: Tensor) -> Tensor:
        """Multiply (N, D) with the vectors of the candidates: (N, C)."""
        return torch.addmm(self.bias, x, self.weight.t(), out=out)

    def take_exponents(
        self, logits: Tensor, target: Tensor, columns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Replace (N, C) logits by exponents, 0 at the target's column if it is not -1.

        Return the (N,) losses, the gradients of the (N,) logits of the targets, and one over the
        sums of all exponents.
        """
        is_target, columns = columns[:, None] >= 0, columns[:, None].clamp(min=0)
        without = logits.gather(1, columns).masked_fill_(is_target, -torch.inf)
        logits.scatter_(1, columns, without)
        peak = torch.maximum(logits.amax(dim=1), target)
        others = logits.sub_(peak[:, None]).exp_().sum(dim=1)
        total = others + torch.exp(target - peak)
        # -others / total is p - 1, without the rounding of a difference.
        return total.log() + (peak - target), -others / total, 1 / total

    def outputs(self, logits: Tensor, *, out: Tensor) -> Tensor:
        """Multiply (N, C) with the same, transposed: (N, D)."""
        return torch.mm(logits, self.weight, out=out)

    def make_sum(self) -> Tensor:
        """Return (C, D) zeros."""
        return torch.zeros_like(self.weight)

    def add_weight(self, logits: Tensor, x: Tensor, total: Tensor) -> None:
        """Add the product of (N, C), transposed, and (N, D) to a sum."""
        total.addmm_(logits.t(), x)


class _NativeProducts(_Products):
    """The same by the native kernel; the sum is stored transposed."""

    def __init__(self, candidates: _Candidates, kernel: Kernel, precision: Precision) -> None:
        super().__init__(candidates)
        self.kernel = kernel
        self.precision = precision
        self.packed = PackedMatrix(kernel, self.weight, precision=Precision.F32)
        self.transposed = PackedMatrix(kernel, self.weight.t(), precision=precision)
        self.no_bias = self.weight.new_zeros(self.weight.shape[1])
        self.product = self.weight.new_empty(self.weight.shape[::-1])

    def logits(self, x: Tensor, *, out: Tensor) -> Tensor:
        return multiply_rows(self.kernel, self.packed, x, self.bias, out=out)

    def take_exponents(
        self, logits: Tensor, target: Tensor, columns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return take_exponents(self.kernel, logits, target, columns)

    def outputs(self, logits: Tensor, *, out: Tensor) -> Tensor:
        return multiply_rows(
            self.kernel,
            self.transposed,
            logits,
            self.no_bias,
            precision=self.precision,
            out=out,
        )

    def make_sum(self) -> Tensor:
        return torch.zeros_like(self.weight.t(), memory_format=torch.contiguous_format).t()

    def add_weight(self, logits: Tensor, x: Tensor, total: Tensor) -> None:
        with borrow() as take:
            multiply_packed(
                self.kernel,
                x.t().contiguous(),
                logits.t(),
                take=take,
                precision=self.precision,
                out=self.product,
            )
        total.t().add_(self.product)


def _make_products(candidates: _Candidates, precision: Precision) -> _Products:
    kernel = find_product_kernel([candidates.weight, candidates.bias])
    if kernel is None or candidates.weight.numel() > MAX_PACKED:
        return _Products(candidates)
    return _NativeProducts(candidates, kernel, precision)


def _choose_candidates(
    weight: Tensor, bias: Tensor, targets: Tensor, negatives: Negatives | None
) -> _Candidates:
    if negatives is None:
        if len(targets) and int(targets.min()) < 0:
            raise IndexError(f"expected ids of words as targets, got {int(targets.min())}")
        return _Candidates(weight=weight, bias=bias, columns=targets)
    words = negatives.words
    columns = torch.searchsorted(words, targets).clamp_(max=len(words) - 1)
    return _Candidates(
        weight=weight[words],
        bias=bias[words] - negatives.log_expected.to(bias.dtype),
        columns=columns.masked_fill_(words[columns] != targets, -1),
    )


def _pass_over_rows(
    outputs: Tensor,
    targets: Tensor,
    *,
    weight: Tensor,
    bias: Tensor,
    candidates: _Candidates,
    rows_at_once: int | None,
    precision: Precision,
    for_outputs: bool,
    for_words: bool,
) -> _Sums:
    num_rows, num_candidates = len(outputs), len(candidates.weight)
    step = min(rows_at_once or choose_rows(num_candidates), num_rows) or 1
    buffer = outputs.new_empty(step, num_candidates)
    losses, own = outputs.new_empty(num_rows), outputs.new_empty(num_rows)
    grad_outputs = torch.empty_like(outputs) if for_outputs else None
    products = _make_products(candidates, precision)
    grad_weight = products.make_sum() if for_words else None
    grad_bias = torch.zeros_like(candidates.bias) if for_words else None
    for start in range(0, num_rows, step):
        part = slice(start, start + step)
        x, words = outputs[part], targets[part]
        own_weight = weight[words]
        right = (x * own_weight).sum(dim=1) + bias[words]
        logits = products.logits(x, out=buffer[: len(x)])
        # The target is scored separately, so it is masked among the candidates.
        losses[part], own[part], share = products.take_exponents(
            logits, right, candidates.columns[part]
        )
        # Scaling the few columns of a product by the share is cheaper than scaling the logits.
        if grad_outputs is not None:
            gradient = products.outputs(logits, out=grad_outputs[part])
            gradient.mul_(share[:, None]).addcmul_(own_weight, own[part, None])
        if grad_weight is not None and grad_bias is not None:
            products.add_weight(logits, x * share[:, None], grad_weight)
            grad_bias.addmv_(logits.t(), share)
    return _Sums(
        loss=losses.sum(),
        outputs=grad_outputs,
        candidates=None if grad_weight is None else grad_weight.contiguous(),
        biases=grad_bias,
        own=own,
    )


def _gather_words(
    sums: _Sums, outputs: Tensor, targets: Tensor, negatives: Negatives | None
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return (U,) words, (U, D) and (U,) gradients; words is None if the gradient is dense."""
    vectors, biases = sums.candidates, sums.biases
    if vectors is None or biases is None:
        return None, None, None
    # Rows of one target are summed in order, for any number of threads.
    distinct, own_vectors, own_biases = _sum_by_target(targets, outputs, sums.own)
    if negatives is None:
        vectors.index_add_(0, distinct, own_vectors)
        biases.index_add_(0, distinct, own_biases)
        return None, vectors, biases
    words = torch.cat([negatives.words, distinct]).unique()
    of_negatives = torch.searchsorted(words, negatives.words)
    of_targets = torch.searchsorted(words, distinct)
    all_vectors = vectors.new_zeros(len(words), vectors.shape[1])
    all_biases = biases.new_zeros(len(words))
    for whole, part, own in (
        (all_vectors, vectors, own_vectors),
        (all_biases, biases, own_biases),
    ):
        whole.index_copy_(0, of_negatives, part)
        whole.index_add_(0, of_targets, own)
    return words, all_vectors, all_biases


def _sum_by_target(
    targets: Tensor, outputs: Tensor, factors: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct targets, and per target the sums of `factors * outputs` and `factors`."""
    order = torch.argsort(targets, stable=True)
    distinct, counts = torch.unique_consecutive(targets[order], return_counts=True)
    starts = counts.cumsum(dim=0) - counts
    sums = [
        functional.embedding_bag(
            order, table, starts, mode="sum", per_sample_weights=factors[order]
        )
        for table in (outputs, torch.ones_like(factors)[:, None])
    ]
    return distinct, sums[0], sums[1][:, 0]


def _make_sparse(words: Tensor, values: Tensor, size: torch.Size) -> Tensor:
    size = size[: values.dim()]  # a bias has one number per word
    return torch.sparse_coo_tensor(
        words[None], values, size, is_coalesced=True, check_invariants=False
    )

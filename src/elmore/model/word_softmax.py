"""The LM head: word probabilities from a biLM's output, over all words or against a sample.

Shapes: N tokens to predict, D the output of one direction, V words, S negatives.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmore.config import Precision
from elmore.model.sampling import Negatives
from elmore.model.summed_loss import sum_losses

# The block of logits that `losses` has in memory at a time.
_ROWS, _WORDS = 512, 8192


class WordSoftmax(nn.Module):
    """A softmax with one vector and one bias per word.

    Only `log_probs` has the logits of all rows in memory.
    """

    def __init__(self, *, num_words: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(num_words, dim))
        self.bias = nn.Parameter(torch.zeros(num_words))

    @property
    def num_words(self) -> int:
        """V."""
        return self.weight.shape[0]

    @property
    def dim(self) -> int:
        """D."""
        return self.weight.shape[1]

    @torch.no_grad()
    def initialize(self, seed: int) -> None:
        """Draw initial weights for training; equal seeds give equal weights."""
        generator = torch.Generator().manual_seed(seed)
        self.weight.normal_(0.0, self.dim**-0.5, generator=generator)
        self.bias.zero_()

    def sampled_loss(
        self,
        outputs: Tensor,
        targets: Tensor,
        negatives: Negatives,
        *,
        precision: Precision = Precision.F32,
    ) -> Tensor:
        """Sum -log p of (N,) targets given (N, D) outputs, against the negatives only.

        A negative counts as exp(logit) / its expected number of draws, the target as exp(logit),
        and a negative that is the row's target is ignored. The expectation of the denominator is
        then exactly that of the full softmax. But its logarithm is biased: on average the loss is
        too low by about 1/S, and its gradient is off by as much. To measure a model, use `losses`.
        If every word is a negative, this equals `total_loss`.

        The gradients of weight and bias are sparse and coalesced, with rows only for negatives and
        targets. Torch adds the gradient of a second call without merging rows.
        """
        return sum_losses(
            self._check(outputs, targets),
            targets,
            weight=self.weight,
            bias=self.bias,
            negatives=negatives.to(self.weight.device),
            precision=precision,
        )

    def total_loss(
        self, outputs: Tensor, targets: Tensor, *, precision: Precision = Precision.F32
    ) -> Tensor:
        """Sum -log p of (N,) targets given (N, D) outputs, over all words; dense gradients."""
        outputs = self._check(outputs, targets)
        return sum_losses(outputs, targets, weight=self.weight, bias=self.bias, precision=precision)

    @torch.no_grad()
    def losses(
        self,
        outputs: Tensor,
        targets: Tensor,
        *,
        num_shared: int | None = None,
        unknown_id: int | None = None,
    ) -> Tensor:
        """Return (N,) -log p of targets given (N, D) outputs, over all words; no gradient.

        With `num_shared`, ids from `num_shared` on are merged with `unknown_id` into one word, so
        that an extended vocabulary can be compared with the original one.
        """
        outputs = self._check(outputs, targets)
        if num_shared is None:
            num_shared, unknown_id = self.num_words, -1
        elif unknown_id is None or not 0 <= unknown_id < num_shared <= self.num_words:
            raise ValueError(
                f"expected the unknown word among the first num_shared = {num_shared} of "
                f"{self.num_words} words, got unknown_id = {unknown_id}"
            )
        losses = outputs.new_empty(len(outputs))
        with torch.autocast(outputs.device.type, enabled=False):
            for start in range(0, len(outputs), _ROWS):
                part = slice(start, start + _ROWS)
                losses[part] = self._losses(outputs[part], targets[part], num_shared, unknown_id)
        return losses

    def log_probs(self, outputs: Tensor) -> Tensor:
        """Return (N, V) log p of every word given (N, D) outputs."""
        with torch.autocast(outputs.device.type, enabled=False):
            logits = functional.linear(outputs.to(self.weight.dtype), self.weight, self.bias)
            return logits.log_softmax(dim=1)

    def _check(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Check shapes; return the outputs in the weights' dtype."""
        if targets.dim() != 1 or outputs.shape != (len(targets), self.dim):
            raise ValueError(
                f"expected outputs (N, {self.dim}) and targets (N,), "
                f"got {tuple(outputs.shape)} and {tuple(targets.shape)}"
            )
        return outputs.to(self.weight.dtype)

    def _losses(self, x: Tensor, targets: Tensor, num_shared: int, unknown_id: int) -> Tensor:
        total = self._log_sum_exp(x, 0, num_shared)
        if num_shared == self.num_words:
            right = self._score(x, targets)
        else:
            new = self._log_sum_exp(x, num_shared, self.num_words)
            total = torch.logaddexp(total, new)
            is_unknown = (targets == unknown_id) | (targets >= num_shared)
            right = self._score(x, targets.masked_fill(is_unknown, unknown_id))
            right = torch.where(is_unknown, torch.logaddexp(right, new), right)
        return (total - right).clamp_min(0.0)  # rounding must not make p greater than 1

    def _score(self, x: Tensor, words: Tensor) -> Tensor:
        return (x * self.weight[words]).sum(dim=1) + self.bias[words]

    def _log_sum_exp(self, x: Tensor, first: int, end: int) -> Tensor:
        """Return log(sum(exp(logits))) over words `first` to `end`, one block at a time."""
        peak = x.new_full((len(x),), -torch.inf)
        total = x.new_zeros(len(x))
        buffer = x.new_empty(len(x) * min(_WORDS, end - first))
        for start in range(first, end, _WORDS):
            words = slice(start, min(start + _WORDS, end))
            weight = self.weight[words]
            logits = buffer[: len(x) * len(weight)].view(len(x), len(weight))
            torch.addmm(self.bias[words], x, weight.t(), out=logits)
            last_peak, peak = peak, torch.maximum(peak, logits.amax(dim=1))
            total *= torch.exp(last_peak - peak)
            total += logits.sub_(peak[:, None]).exp_().sum(dim=1)
        return total.log() + peak

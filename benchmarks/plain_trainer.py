"""Pretraining in plain PyTorch, by the recipe of bilm-tf: what elmore's trainer is compared with.

It is given windows and negatives as tensors, so that it reads exactly what elmore's trainer reads,
and starts from the same weights. In one thing it is helped: characters are convolved once for each
distinct token of a window, where published trainers convolve every token.

Shapes: U distinct tokens, C characters, B rows, T tokens of a window, D one direction, V words,
N predictions, S negatives.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.plain_network import PlainNetwork, State
from elmore.model.bilm import BiLM
from elmore.model.word_softmax import WordSoftmax


class Method(StrEnum):
    """The optimizer."""

    ADAGRAD = "adagrad"
    ADAMW = "adamw"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainWindow:
    """T tokens of each of B rows, as each direction reads them: the forward LM first."""

    char_ids: Tensor  # (U, C) int64, of the distinct tokens that are read
    inputs: Tensor  # (2, T, B) int64, positions among the distinct tokens
    targets: Tensor  # (2, T, B) int64, words
    has_target: Tensor  # (T, B) bool, False where there is nothing to predict

    @property
    def num_rows(self) -> int:
        """B."""
        return self.has_target.shape[1]

    @property
    def num_predictions(self) -> int:
        """The number of words that each direction predicts."""
        return int(self.has_target.sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainNegatives:
    """Distinct negative samples, drawn by elmore's trainer."""

    words: Tensor  # (S,) int64
    log_expected: Tensor  # (S,) log of how often each was expected, less that of how often it came


class PlainSoftmax(nn.Module):
    """Sampled softmax by autograd; rows of weights are looked up as an embedding, sparse or not."""

    def __init__(self, softmax: WordSoftmax, *, is_sparse: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(softmax.weight.detach().clone())
        self.bias = nn.Parameter(softmax.bias.detach().clone().unsqueeze(1))
        self.is_sparse = is_sparse

    def forward(self, outputs: Tensor, targets: Tensor, negatives: PlainNegatives) -> Tensor:
        """Add the losses of (N, D) outputs whose words are (N,)."""
        num = len(targets)
        words = torch.cat([targets, negatives.words])
        weights = functional.embedding(words, self.weight, sparse=self.is_sparse)
        biases = functional.embedding(words, self.bias, sparse=self.is_sparse).squeeze(1)
        right = (outputs * weights[:num]).sum(dim=1) + biases[:num]
        wrong = torch.addmm(biases[num:] - negatives.log_expected, outputs, weights[num:].t())
        wrong = wrong.masked_fill(targets[:, None] == negatives.words, -torch.inf)
        logits = torch.cat([right[:, None], wrong], dim=1)  # (N, 1 + S)
        return functional.cross_entropy(logits, torch.zeros_like(targets), reduction="sum")

    @torch.no_grad()
    def copy_to(self, softmax: WordSoftmax) -> None:
        """Copy the weights to an elmore softmax."""
        softmax.weight.copy_(self.weight)
        softmax.bias.copy_(self.bias.squeeze(1))


class PlainTrainer:
    """A biLM and its softmax, trained window by window with carried state."""

    def __init__(
        self,
        bilm: BiLM,
        softmax: WordSoftmax,
        *,
        method: Method = Method.ADAGRAD,
        learning_rate: float = 0.2,
        weight_decay: float = 0.0,
        dropout: float = 0.1,
        max_gradient_norm: float = 10.0,
    ) -> None:
        self.network = PlainNetwork(bilm, dropout=dropout)
        self.softmax = PlainSoftmax(softmax)
        self.output_dropout = nn.Dropout(dropout)
        self.max_gradient_norm = max_gradient_norm
        dense = [weight for weight in self.network.parameters() if weight.requires_grad]
        sparse = list(self.softmax.parameters())
        self.weights = [*dense, *sparse]
        self.optimizers = make_optimizers(
            dense, sparse, method=method, learning_rate=learning_rate, weight_decay=weight_decay
        )
        self._states: list[State | None] = [None, None]

    def step(
        self, window: PlainWindow, negatives: PlainNegatives, *, learning_rate: float | None = None
    ) -> float:
        """Run one step; return the loss per prediction before it, averaged over both directions."""
        loss = self.loss(window, negatives)
        loss.backward()
        clip_gradients(self.weights, max_norm=self.max_gradient_norm)
        take_step(self.optimizers, learning_rate=learning_rate)
        return loss.item() * window.num_rows / max(window.num_predictions, 1)

    def loss(self, window: PlainWindow, negatives: PlainNegatives) -> Tensor:
        """Return half the sum of both directions' losses for each row, and carry the state on.

        With a prediction at every position, this is bilm-tf's loss: the mean times the length.
        """
        tokens = self.network.token_encoder(window.char_ids)
        losses = []
        for number, lstms in enumerate((self.network.forward_lm, self.network.backward_lm)):
            x = functional.embedding(window.inputs[number], tokens)  # (T, B, D)
            outputs, state = lstms(x, self._states[number])
            self._states[number] = [(hidden.detach(), cell.detach()) for hidden, cell in state]
            rows = self.output_dropout(outputs[window.has_target])  # (N, D)
            losses.append(self.softmax(rows, window.targets[number][window.has_target], negatives))
        return (losses[0] + losses[1]) / 2 / window.num_rows

    def copy_to(self, bilm: BiLM, softmax: WordSoftmax) -> None:
        """Copy the weights to an elmore biLM and softmax."""
        self.network.copy_to(bilm)
        self.softmax.copy_to(softmax)


def make_optimizers(
    dense: list[nn.Parameter],
    sparse: list[nn.Parameter],
    *,
    method: Method,
    learning_rate: float,
    weight_decay: float,
) -> list[torch.optim.Optimizer]:
    """Make torch's optimizers; AdamW takes no sparse gradients, so SparseAdam handles those."""
    if method is Method.ADAGRAD:
        weights = [*dense, *sparse]
        return [torch.optim.Adagrad(weights, lr=learning_rate, initial_accumulator_value=1.0)]
    matrices = [weight for weight in dense if weight.dim() > 1]
    biases = [weight for weight in dense if weight.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": biases, "weight_decay": 0.0},
    ]
    return [
        torch.optim.AdamW(groups, lr=learning_rate),
        torch.optim.SparseAdam(sparse, lr=learning_rate),
    ]


def take_step(optimizers: list[torch.optim.Optimizer], *, learning_rate: float | None) -> None:
    """Update the weights, with a new learning rate if given, and clear the gradients."""
    for optimizer in optimizers:
        for group in optimizer.param_groups if learning_rate is not None else ():
            group["lr"] = learning_rate
        # torch warns about unchecked sparse tensors, even its own, unless checks are turned off.
        with torch.sparse.check_sparse_tensor_invariants(enable=False):
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)


@torch.no_grad()
def clip_gradients(weights: Iterable[Tensor], *, max_norm: float) -> None:
    """Clip the global gradient norm; torch's own function does not take sparse gradients."""
    values = []
    for weight in weights:
        if weight.grad is not None and weight.grad.is_sparse:
            weight.grad = weight.grad.coalesce()
            values.append(weight.grad.values())
        elif weight.grad is not None:
            values.append(weight.grad)
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(v) for v in values]))
    scale = (max_norm / norm).clamp(max=1.0)
    for value in values:
        value.mul_(scale)

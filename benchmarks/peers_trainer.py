"""A training step with AllenNLP's cells, on the windows that elmore's trainer reads.

The network is that of `benchmarks/peers_method.py`: step by step in Python, with the characters of
every token convolved. In the peers' favor, the backward LM's tokens are convolved only if they are
not in the forward LM's window, and the softmax and optimizers are those of the plain trainer, with
sparse gradients. Each window starts from zeros, which takes as long as carried state.

Shapes: U distinct tokens, T steps, B rows, D one direction, N predictions.
"""

import torch
from torch import Tensor, nn

from benchmarks.peers_method import PeersLSTM, PeersMethod
from benchmarks.plain_trainer import (
    Method,
    PlainNegatives,
    PlainSoftmax,
    PlainWindow,
    clip_gradients,
    make_optimizers,
    take_step,
)
from elmore.model.bilm import BiLM
from elmore.model.word_softmax import WordSoftmax


class PeersTrainer:
    """The peers' network with a sampled softmax and an optimizer."""

    def __init__(
        self,
        bilm: BiLM,
        softmax: WordSoftmax,
        *,
        method: Method = Method.ADAGRAD,
        learning_rate: float = 0.2,
        dropout: float = 0.1,
        max_gradient_norm: float = 10.0,
    ) -> None:
        self.network = PeersMethod(bilm)
        self.softmax = PlainSoftmax(softmax)
        self.dropout = nn.Dropout(dropout)
        self.max_gradient_norm = max_gradient_norm
        dense, sparse = list(self.network.parameters()), list(self.softmax.parameters())
        self.weights = [*dense, *sparse]
        self.optimizers = make_optimizers(
            dense, sparse, method=method, learning_rate=learning_rate, weight_decay=0.0
        )
        for lstm in self.network.backward_lm:
            assert isinstance(lstm, PeersLSTM)
            lstm.reads_backward = False  # a window has each direction in its reading order

    def step(self, window: PlainWindow, negatives: PlainNegatives) -> float:
        """Run one step; return the loss per prediction before it, averaged over both directions."""
        loss = self.loss(window, negatives)
        loss.backward()
        clip_gradients(self.weights, max_norm=self.max_gradient_norm)
        take_step(self.optimizers, learning_rate=None)
        return loss.item() * window.num_rows / max(window.num_predictions, 1)

    def loss(self, window: PlainWindow, negatives: PlainNegatives) -> Tensor:
        """Return half the sum of both directions' losses for each row."""
        has_target = window.has_target.t()  # (B, T)
        tokens = self._encode(window)
        losses = []
        for number, lstms in enumerate((self.network.forward_lm, self.network.backward_lm)):
            outputs = self._read(lstms, tokens[number])
            rows = self.dropout(outputs[has_target])  # (N, D)
            targets = window.targets[number].t()[has_target]
            losses.append(self.softmax(rows, targets, negatives))
        return (losses[0] + losses[1]) / 2 / window.num_rows

    def _read(self, lstms: nn.ModuleList, x: Tensor) -> Tensor:
        """Run one direction over (B, T, D)."""
        lengths = [x.shape[1]] * len(x)
        for depth, lstm in enumerate(lstms):
            x = self.dropout(x)
            output = lstm(x, lengths)
            x = output + x if self.network.has_residuals and depth > 0 else output
        return x

    def _encode(self, window: PlainWindow) -> tuple[Tensor, Tensor]:
        """Return (B, T, D) for each direction; every token of the forward LM is convolved."""
        forward_lm, backward_lm = window.inputs.transpose(1, 2)  # (B, T)
        rows = torch.full((len(window.char_ids),), -1)  # of each distinct token in `encoded`
        rows[forward_lm.flatten()] = torch.arange(forward_lm.numel())
        missing = (rows < 0).nonzero().squeeze(1)
        rows[missing] = torch.arange(len(missing)) + forward_lm.numel()
        encoded_ids = torch.cat([forward_lm.flatten(), missing])
        # The peers keep 0 for "no token".
        encoded = self.network.token_encoder(window.char_ids[encoded_ids][None] + 1)[0]
        forward_tokens = encoded[: forward_lm.numel()].unflatten(0, forward_lm.shape)
        return forward_tokens, nn.functional.embedding(rows[backward_lm], encoded)

"""LSTMs over sentences of unlike lengths; what is behind a sentence's end changes nothing.

Shapes: B sentences, T tokens of the longest, D input, H one direction.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BiLSTM(nn.Module):
    """Layers that read both ways; dropout between them, one mask for all tokens of a sentence."""

    def __init__(
        self, *, input_dim: int, hidden_dim: int, num_layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.output_dim = 2 * hidden_dim
        self.layers = nn.ModuleList(
            nn.LSTM(
                input_dim if number == 0 else 2 * hidden_dim,
                hidden_dim,
                batch_first=True,
                bidirectional=True,
            )
            for number in range(num_layers)
        )
        for layer in self.layers:
            start_lstm(layer)
        self.dropout = SentenceDropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, 2H), zero where there is no token."""
        for number, layer in enumerate(self.layers):
            x = read_packed(layer, x if number == 0 else self.dropout(x), lengths)
        return x


class SentenceDropout(nn.Module):
    """Drops the same numbers of all tokens of a sentence (Gal and Ghahramani, 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to itself, thinned out in training."""
        if not self.training or not self.rate:
            return x
        kept = x.new_empty(x.shape[0], 1, x.shape[2]).bernoulli_(1 - self.rate)
        return x * (kept / (1 - self.rate))


def read_packed(lstm: nn.Module, x: Tensor, lengths: Tensor) -> Tensor:
    """Let an LSTM read sentences up to their ends, and fill up with zeros."""
    packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    output, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=x.shape[1])
    return output


@torch.no_grad()
def start_lstm(lstm: nn.Module) -> None:
    """Begin with orthogonal recurrent weights, and gates that forget nothing."""
    for name, weights in lstm.named_parameters():
        if name.startswith("weight_hh"):
            for gate in weights.chunk(4):
                nn.init.orthogonal_(gate)
        elif name.startswith("weight_ih"):
            nn.init.xavier_uniform_(weights)
        else:
            weights.zero_()
            if name.startswith("bias_ih"):
                weights.chunk(4)[1].fill_(1.0)  # input, forget, cell, output

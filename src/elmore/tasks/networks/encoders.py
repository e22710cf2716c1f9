"""LSTMs over padded batches of sentences; padding does not change any result.

Shapes: B sentences, T tokens in the longest, D input, H one direction.
"""

import torch
from torch import Tensor, nn


class BiLSTM(nn.Module):
    """Bidirectional layers, with one dropout mask per sentence between them.

    Each direction is a separate LSTM that also reads the padding, which comes after the sentence
    and so does no harm: on a CPU, torch is faster with padded sentences than with packed ones.
    """

    def __init__(
        self, *, input_dim: int, hidden_dim: int, num_layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.output_dim = 2 * hidden_dim
        input_dims = [input_dim] + [2 * hidden_dim] * (num_layers - 1)
        self.rightward = nn.ModuleList(make_lstm(dim, hidden_dim) for dim in input_dims)
        self.leftward = nn.ModuleList(make_lstm(dim, hidden_dim) for dim in input_dims)
        self.dropout = SentenceDropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, 2H), zero at padding."""
        positions = find_reversed_positions(lengths, x.shape[1])
        is_padding = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]  # (B, T)
        for number, (rightward, leftward) in enumerate(
            zip(self.rightward, self.leftward, strict=True)
        ):
            x = x if number == 0 else self.dropout(x)
            to_right = rightward(x)[0]
            to_left = reverse(leftward(reverse(x, positions))[0], positions)
            x = torch.cat([to_right, to_left], dim=2).masked_fill(is_padding.unsqueeze(2), 0.0)
        return x


def find_reversed_positions(lengths: Tensor, num_positions: int) -> Tensor:
    """Return (B, T): the positions of the tokens in reverse order; padding stays in place."""
    positions = torch.arange(num_positions, device=lengths.device).expand(len(lengths), -1)
    backwards = lengths[:, None] - 1 - positions
    return backwards.where(backwards >= 0, positions)


def reverse(x: Tensor, positions: Tensor) -> Tensor:
    """Reorder the tokens of (B, T, D) by `find_reversed_positions`; its own inverse."""
    return x.gather(1, positions.unsqueeze(2).expand(-1, -1, x.shape[2]))


class SentenceDropout(nn.Module):
    """Dropout with the same mask for all tokens of a sentence (Gal and Ghahramani, 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout to (B, T, D) in training."""
        if not self.training or not self.rate:
            return x
        kept = x.new_empty(x.shape[0], 1, x.shape[2]).bernoulli_(1 - self.rate)
        return x * (kept / (1 - self.rate))


def make_lstm(input_dim: int, hidden_dim: int) -> nn.LSTM:
    """Return an initialized LSTM for (B, T, D)."""
    lstm = nn.LSTM(input_dim, hidden_dim, batch_first=True)
    init_lstm(lstm)
    return lstm


@torch.no_grad()
def init_lstm(lstm: nn.Module) -> None:
    """Initialize with orthogonal recurrent weights and a forget bias of 1."""
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

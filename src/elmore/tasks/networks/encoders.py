"""LSTMs over sentences of unlike lengths; what is behind a sentence's end changes nothing.

Shapes: B sentences, T tokens of the longest, D input, H one direction.
"""

import torch
from torch import Tensor, nn


class BiLSTM(nn.Module):
    """Layers that read both ways; dropout between them, one mask for all tokens of a sentence.

    Each direction is an LSTM of its own that reads on into the padding, where it does no harm: on
    a CPU, torch reads long padded sentences faster than packed ones.
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
        """Map (B, T, D) to (B, T, 2H), zero where there is no token."""
        turned = find_turned_places(lengths, x.shape[1])
        is_behind = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]  # (B, T)
        for number, (rightward, leftward) in enumerate(
            zip(self.rightward, self.leftward, strict=True)
        ):
            x = x if number == 0 else self.dropout(x)
            to_right = rightward(x)[0]
            to_left = turn(leftward(turn(x, turned))[0], turned)
            x = torch.cat([to_right, to_left], dim=2).masked_fill(is_behind.unsqueeze(2), 0.0)
        return x


def find_turned_places(lengths: Tensor, num_places: int) -> Tensor:
    """Return (B, T): where each token is if its sentence is read from its end; padding stays."""
    places = torch.arange(num_places, device=lengths.device).expand(len(lengths), -1)
    backwards = lengths[:, None] - 1 - places
    return backwards.where(backwards >= 0, places)


def turn(x: Tensor, turned: Tensor) -> Tensor:
    """Return (B, T, D) with its tokens at other places (B, T); twice is not at all."""
    return x.gather(1, turned.unsqueeze(2).expand(-1, -1, x.shape[2]))


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


def make_lstm(input_dim: int, hidden_dim: int) -> nn.LSTM:
    """Return an LSTM that reads (B, T, D), with weights to begin with."""
    lstm = nn.LSTM(input_dim, hidden_dim, batch_first=True)
    start_lstm(lstm)
    return lstm


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

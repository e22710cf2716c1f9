"""LSTM layers that read to the right and to the left in turn (Zhou and Xu, 2015; He et al., 2017).

Each layer's output is mixed with its input by a highway gate (He et al., section 2.2):

    g = sigmoid(W [x; o] + b)        y = g * o + (1 - g) * V x

Two things differ from He et al., both so that a layer is one call of torch's LSTM. Their cell
remembers y, and g reads y of the token before; here it remembers its own output o, and g reads o of
the same token. Their dropout takes numbers out of y, the same for all tokens of a sentence; so it
does here on the way up, but what a cell remembers is thinned out by dropping recurrent weights, the
same for all tokens of a batch (Merity et al., 2018).

Shapes: B sentences, T tokens of the longest, N tokens of all, D input, H hidden.
"""

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from elmore.tasks.networks.encoders import start_lstm


class AlternatingLSTM(nn.Module):
    """Layers with highway gates, the first from left to right; one direction each."""

    def __init__(
        self, *, input_dim: int, hidden_dim: int, num_layers: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.output_dim = hidden_dim
        self.layers = nn.ModuleList(
            HighwayLSTM(
                input_dim=input_dim if number == 0 else hidden_dim,
                hidden_dim=hidden_dim,
                dropout=dropout,
            )
            for number in range(num_layers)
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, H), zero where there is no token."""
        # Packed from here to the end: padding is never computed, and to turn is to reorder rows.
        packed = _pack(x, lengths)
        turned = find_turned_rows(lengths)
        rows, is_turned = packed.data, False
        for number, layer in enumerate(self.layers):
            if number > 0:
                rows, is_turned = rows[turned], not is_turned
            rows = layer(rows, packed)
        if is_turned:
            rows = rows[turned]
        output, _ = pad_packed_sequence(
            packed._replace(data=rows), batch_first=True, total_length=x.shape[1]
        )
        return output


class HighwayLSTM(nn.Module):
    """One layer: an LSTM, the way around it, and a gate that chooses for each number."""

    def __init__(self, *, input_dim: int, hidden_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.lstm = nn.LSTM(input_dim, hidden_dim)
        self.gate = nn.Linear(input_dim + hidden_dim, hidden_dim)
        self.around = nn.Linear(input_dim, hidden_dim, bias=False)
        self.dropout = dropout
        start_lstm(self.lstm)
        nn.init.xavier_uniform_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)
        nn.init.orthogonal_(self.around.weight)

    def forward(self, rows: Tensor, packing: PackedSequence) -> Tensor:
        """Map (N, D) to (N, H), rows of `packing`: each sentence's in the order of reading."""
        output = self._read(packing._replace(data=rows))
        gate = self.gate(torch.cat([rows, output], dim=-1)).sigmoid()
        mixed = gate * output + (1 - gate) * self.around(rows)
        if not self.training or not self.dropout:
            return mixed
        num_sentences = int(packing.batch_sizes[0])
        kept = functional.dropout(mixed.new_ones(num_sentences, mixed.shape[1]), self.dropout)
        # Packed rows are the first tokens of all sentences, then the second tokens, and so on.
        return mixed * torch.cat([kept[:size] for size in packing.batch_sizes.tolist()])

    def _read(self, packed: PackedSequence) -> Tensor:
        if not self.training or not self.dropout:
            return self.lstm(packed)[0].data
        recurrent = self.lstm.get_parameter("weight_hh_l0")  # (4H, H)
        thinned = {"weight_hh_l0": functional.dropout(recurrent, self.dropout)}
        return functional_call(self.lstm, thinned, (packed,))[0].data


def find_turned_rows(lengths: Tensor) -> Tensor:
    """Return (N,): for each packed row, the one that takes its place when sentences are turned.

    Each is turned by its own length, so that it still begins where it began; to turn twice is to
    do nothing.
    """
    places = torch.arange(int(lengths.max()), device=lengths.device)
    firsts = (lengths.cumsum(dim=0) - lengths)[:, None]
    numbers = firsts + places  # (B, T), of the tokens, counted through all sentences
    # Behind a sentence's end the number is wrong, but packing leaves it out.
    backwards = firsts + lengths[:, None] - 1 - places
    order = _pack(numbers, lengths).data  # (N,), the token in each row
    row_of = torch.empty_like(order)
    row_of[order] = torch.arange(len(order), device=order.device)
    return row_of[_pack(backwards, lengths).data]


def _pack(x: Tensor, lengths: Tensor) -> PackedSequence:
    return pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)

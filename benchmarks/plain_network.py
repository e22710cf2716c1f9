"""The biLM as a user of PyTorch would write it today: `nn.Conv1d`, `nn.Linear` and `nn.LSTM`.

What pretraining is compared with. It shares no code with elmore's network, only its weights, which
can be copied here and back. `nn.LSTM` has no bound on cells and projections, so the two are the
same function while elmore's bounds do not bind, or are off. Byte models with a projection.

Shapes: U distinct tokens, C characters, E char dim, F filters, B rows, T tokens of a window, D one
direction, H cells.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmore.model.bilm import BiLM
from elmore.model.lstm import ProjectedLSTM
from elmore.model.token_encoder import CharacterCNN, Highway, TokenEncoder

State = list[tuple[Tensor, Tensor]]  # a layer each: (1, B, D) and (1, B, H)


class PlainNetwork(nn.Module):
    """A separate biLM, initialized with the weights of the given one."""

    def __init__(self, bilm: BiLM, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.token_encoder = PlainTokenEncoder(bilm.token_encoder)
        self.forward_lm, self.backward_lm = (
            PlainLSTMs(lstms, has_residuals=bilm.has_residuals, dropout=dropout)
            for lstms in bilm.directions
        )

    @torch.no_grad()
    def copy_to(self, bilm: BiLM) -> None:
        """Copy the weights to an elmore biLM of the same shape."""
        self.token_encoder.copy_to(bilm.token_encoder)
        for direction, lstms in zip(
            (self.forward_lm, self.backward_lm), bilm.directions, strict=True
        ):
            direction.copy_to(lstms)


class PlainTokenEncoder(nn.Module):
    """Character convolution, highway layers and projection."""

    def __init__(self, encoder: TokenEncoder) -> None:
        super().__init__()
        cnn = encoder.characters
        assert cnn is not None
        assert encoder.words is None
        assert encoder.projection is not None
        self.embedding = nn.Embedding(*cnn.embedding.weight.shape)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(cnn.embedding.embedding_dim, filters.out_features, width)
            for width, filters in zip(cnn.widths, cnn.filters, strict=True)
        )
        dim = encoder.projection.in_features
        # Transform and gate are one product of twice the width.
        self.highways = nn.ModuleList(nn.Linear(dim, 2 * dim) for _ in encoder.highways)
        self.projection = nn.Linear(dim, encoder.projection.out_features)
        self._copy_from(encoder)

    def forward(self, char_ids: Tensor) -> Tensor:
        """Map (U, C) ids to (U, D)."""
        chars = self.embedding(char_ids).transpose(1, 2)  # (U, E, C)
        x = torch.cat([convolve(chars).amax(dim=2) for convolve in self.convolutions], dim=1).relu()
        for highway in self.highways:
            transformed, gate = highway(x).chunk(2, dim=1)
            x = torch.lerp(x, transformed.relu(), gate.sigmoid())
        return self.projection(x)

    @torch.no_grad()
    def _copy_from(self, encoder: TokenEncoder) -> None:
        cnn = encoder.characters
        assert isinstance(cnn, CharacterCNN)
        self.embedding.weight.copy_(cnn.embedding.weight)
        for convolve, filters in zip(self.convolutions, cnn.filters, strict=True):
            # elmore stores a filter as one row, character by character.
            convolve.weight.copy_(filters.weight.unflatten(1, (convolve.kernel_size[0], -1)).mT)
            convolve.bias.copy_(filters.bias)
        for highway, source in zip(self.highways, encoder.highways, strict=True):
            assert isinstance(source, Highway)
            highway.weight.copy_(torch.cat([source.transform.weight, source.gate.weight]))
            highway.bias.copy_(torch.cat([source.transform.bias, source.gate.bias]))
        assert encoder.projection is not None
        self.projection.load_state_dict(encoder.projection.state_dict())

    def copy_to(self, encoder: TokenEncoder) -> None:
        """Undo `_copy_from`."""
        cnn = encoder.characters
        assert cnn is not None
        cnn.embedding.weight.copy_(self.embedding.weight)
        for convolve, filters in zip(self.convolutions, cnn.filters, strict=True):
            filters.weight.copy_(convolve.weight.mT.flatten(1))
            filters.bias.copy_(convolve.bias)
        for highway, target in zip(self.highways, encoder.highways, strict=True):
            for source, goal in ((highway.weight, "weight"), (highway.bias, "bias")):
                transform, gate = source.chunk(2)
                getattr(target.transform, goal).copy_(transform)
                getattr(target.gate, goal).copy_(gate)
        assert encoder.projection is not None
        encoder.projection.load_state_dict(self.projection.state_dict())


class PlainLSTMs(nn.Module):
    """The layers of one direction, dropout on what each of them reads, as bilm-tf has it."""

    def __init__(
        self, lstms: Sequence[ProjectedLSTM], *, has_residuals: bool, dropout: float
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_copy_lstm(lstm) for lstm in lstms)
        self.has_residuals = has_residuals
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Read (T, B, D) in the order of the first axis; return (T, B, D) and the last state."""
        last: State = []
        for depth, layer in enumerate(self.layers):
            x = self.dropout(x)
            output, layer_state = layer(x, None if state is None else state[depth])
            last.append(layer_state)
            x = output + x if self.has_residuals and depth > 0 else output
        return x, last

    def copy_to(self, lstms: Sequence[ProjectedLSTM]) -> None:
        """Undo `_copy_lstm`."""
        for layer, lstm in zip(self.layers, lstms, strict=True):
            assert lstm.projection_weight is not None
            lstm.input_weight.copy_(layer.weight_ih_l0)
            lstm.state_weight.copy_(layer.weight_hh_l0)
            lstm.projection_weight.copy_(layer.weight_hr_l0)
            lstm.bias.copy_(layer.bias_ih_l0)


@torch.no_grad()
def _copy_lstm(lstm: ProjectedLSTM) -> nn.LSTM:
    assert lstm.projection_weight is not None
    output_dim, cell_dim = lstm.projection_weight.shape
    layer = nn.LSTM(lstm.input_weight.shape[1], cell_dim, proj_size=output_dim)
    layer.weight_ih_l0.copy_(lstm.input_weight)
    layer.weight_hh_l0.copy_(lstm.state_weight)
    layer.weight_hr_l0.copy_(lstm.projection_weight)
    layer.bias_ih_l0.copy_(lstm.bias)
    # torch has two biases; training both would double their learning rate, so one is fixed.
    layer.bias_hh_l0.zero_().chunk(4)[1].fill_(lstm.forget_bias)
    layer.bias_hh_l0.requires_grad_(False)
    return layer

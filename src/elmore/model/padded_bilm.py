"""The biLM over a padded batch, in operations that `torch.export` can record.

Everywhere else, sentences are packed by their lengths, which a graph for batches of any size cannot
do. The numbers are the same to about 1e-6.

Shapes: L layers, B sentences, T symbols in the longest (markers included), C characters, D one
direction, H cells.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmore.model.bilm import BiLM
from elmore.model.lstm import ProjectedLSTM
from elmore.model.token_encoder import CharacterCNN, Highway, TokenEncoder
from elmore.text.batches import NUM_MARKERS


def read_padded(bilm: BiLM, char_ids: Tensor, lengths: Tensor) -> Tensor:
    """Return all layers (L, B, T, 2D) of (B, T, C) char ids; past a sentence's end, any numbers."""
    num_sentences, num_steps, width = char_ids.shape
    tokens = encode_tokens(bilm.token_encoder, char_ids.reshape(-1, width))
    tokens = tokens.reshape(num_sentences, num_steps, -1)
    state = bilm.initial_state(num_sentences)
    # Reading a reversed sentence from left to right is reading it from right to left.
    backwards = reverse(tokens, lengths)
    layers = [torch.cat([tokens, tokens], dim=-1)]
    inputs = [tokens, backwards]
    for depth, pair in enumerate(zip(*bilm.directions, strict=True)):
        outputs = [
            run_lstm(lstm, x, state.hidden[number, depth], state.cell[number, depth])
            for number, (lstm, x) in enumerate(zip(pair, inputs, strict=True))
        ]
        if bilm.has_residuals and depth > 0:
            outputs = [output + x for output, x in zip(outputs, inputs, strict=True)]
        layers.append(torch.cat([outputs[0], reverse(outputs[1], lengths)], dim=-1))
        inputs = outputs
    return torch.stack(layers)


def add_markers(
    char_ids: Tensor, *, begin: Tensor, end: Tensor, num_units: int
) -> tuple[Tensor, Tensor]:
    """Put markers around sentences of padded ids, in which 0 is padding and ids are 1 higher.

    Return the model's own (B, T + 2, C) ids, and the (B,) lengths.
    """
    lengths = char_ids.any(dim=2).sum(dim=1) + NUM_MARKERS
    ids = torch.where(char_ids > 0, char_ids - 1, num_units)
    ids = functional.pad(ids, (0, 0, 1, 1), value=num_units)
    steps = torch.arange(ids.shape[1], device=ids.device)
    ids = torch.where((steps == 0)[:, None], begin, ids)
    return torch.where((steps == lengths[:, None] - 1)[:, :, None], end, ids), lengths


def reverse(x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse each of B sentences (B, T, D) by its own length."""
    steps = torch.arange(x.shape[1], device=x.device)
    order = lengths[:, None] - 1 - steps
    order = torch.where(order >= 0, order, steps)  # padding stays where it is
    return x.gather(1, order[:, :, None].expand_as(x))


def run_lstm(lstm: ProjectedLSTM, x: Tensor, hidden: Tensor, cell: Tensor) -> Tensor:
    """Return (B, T, D) outputs of one layer from states (B, D), (B, H)."""
    # Private to torch, but the only loop whose number of steps an exported graph leaves open.
    from torch._higher_order_ops.scan import scan  # noqa: PLC0415

    gates_of_input = functional.linear(x, lstm.input_weight, lstm.full_bias()).transpose(0, 1)

    def step(carried: tuple[Tensor, Tensor], gates: Tensor) -> tuple[Any, Tensor]:
        hidden, cell = carried
        gates = gates + hidden @ lstm.state_weight.t()
        write, keep, candidate, show = gates.chunk(4, dim=1)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(write) * torch.tanh(candidate)
        if lstm.cell_clip is not None:
            cell = cell.clamp(-lstm.cell_clip, lstm.cell_clip)
        hidden = torch.sigmoid(show) * torch.tanh(cell)
        if lstm.projection_weight is not None:
            hidden = hidden @ lstm.projection_weight.t()
            if lstm.output_clip is not None:
                hidden = hidden.clamp(-lstm.output_clip, lstm.output_clip)
        return (hidden, cell), hidden.clone()

    _, outputs = scan(step, (hidden.contiguous(), cell.contiguous()), gates_of_input)
    return outputs.transpose(0, 1)


def encode_tokens(encoder: TokenEncoder, char_ids: Tensor) -> Tensor:
    """Return the (N, D) context-free vectors of (N, C) char ids."""
    assert encoder.characters is not None
    x = (
        convolve(encoder.characters, char_ids)
        if isinstance(encoder.characters, CharacterCNN)
        else encoder.characters(char_ids)
    )
    for highway in encoder.highways:
        assert isinstance(highway, Highway)
        gate = torch.sigmoid(highway.gate(x))
        x = gate * torch.relu(highway.transform(x)) + (1 - gate) * x
    return x if encoder.projection is None else encoder.projection(x)


def convolve(network: CharacterCNN, char_ids: Tensor) -> Tensor:
    """Return the (N, F) strongest responses of all filters."""
    # The id after the last unit means "no character".
    units = functional.pad(network.embedding.weight, (0, 0, 0, 1))
    chars = units[char_ids].transpose(1, 2)  # (N, E, C)
    strongest = []
    for width, layer in zip(network.widths, network.filters, strict=True):
        assert isinstance(layer, nn.Linear)
        filters = layer.weight.unflatten(1, (width, -1)).transpose(1, 2)  # (F, E, width)
        strongest.append(functional.conv1d(chars, filters).amax(dim=2) + layer.bias)
    activate = torch.tanh if network.activate_ is torch.tanh_ else torch.relu
    return activate(torch.cat(strongest, dim=1))

"""ELMo as AllenNLP computes it, in plain torch, with the weights of an elmore biLM to compare with.

Every token of a padded batch is convolved, seen before or not, padding too; the LSTMs step in
Python, with one product for the input and one for the state at each step. Only rows whose sentence
has a token at a step are computed there. Byte models with a projection, started from zeros.

Shapes: L LSTM layers, B sentences, T tokens of the longest, C characters, E char dim, F filters,
D one direction, H cells.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmore.model.bilm import BiLM
from elmore.model.lstm import ProjectedLSTM
from elmore.model.token_encoder import CharacterCNN, Highway, TokenEncoder
from elmore.text.batches import Speller

NO_TOKEN = 0  # padding after the end of a sentence; every other id is elmore's plus one


class PeersMethod(nn.Module):
    """A separate biLM, initialized with the weights of the given one."""

    def __init__(self, bilm: BiLM) -> None:
        super().__init__()
        self.token_encoder = PeersTokenEncoder(bilm.token_encoder)
        self.forward_lm = nn.ModuleList(PeersLSTM(lstm) for lstm in bilm.forward_lm)
        self.backward_lm = nn.ModuleList(
            PeersLSTM(lstm, reads_backward=True) for lstm in bilm.backward_lm
        )
        self.has_residuals = bilm.has_residuals

    def forward(self, char_ids: Tensor, lengths: Tensor) -> Tensor:
        """Map (B, T, C) ids of sentences of (B,) lengths to (L + 1, B, T, 2D)."""
        return self.contextualize(self.token_encoder(char_ids), lengths)

    def contextualize(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Run the LSTMs over (B, T, D); rows are sorted by length, and reordered at the end."""
        order = torch.argsort(lengths, descending=True, stable=True)
        sorted_lengths = lengths[order].tolist()
        forward_lm = backward_lm = tokens[order]
        layers = [torch.cat([forward_lm, backward_lm], dim=2)]
        for depth, (right, left) in enumerate(zip(self.forward_lm, self.backward_lm, strict=True)):
            below = forward_lm, backward_lm
            forward_lm = right(forward_lm, sorted_lengths)
            backward_lm = left(backward_lm, sorted_lengths)
            if self.has_residuals and depth > 0:
                forward_lm, backward_lm = forward_lm + below[0], backward_lm + below[1]
            layers.append(torch.cat([forward_lm, backward_lm], dim=2))
        return torch.stack(layers)[:, torch.argsort(order)]


class PeersTokenEncoder(nn.Module):
    """Character convolution, highway layers and projection, repeated for every token."""

    def __init__(self, encoder: TokenEncoder) -> None:
        super().__init__()
        assert encoder.characters is not None
        assert encoder.words is None
        assert encoder.projection is not None
        self.characters = PeersCharacterCNN(encoder.characters)
        self.highways = nn.ModuleList(PeersHighway(highway) for highway in encoder.highways)
        self.projection = nn.Linear(encoder.projection.in_features, encoder.projection.out_features)
        self.projection.load_state_dict(encoder.projection.state_dict())

    def forward(self, char_ids: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T, D)."""
        x = self.characters(char_ids.flatten(0, 1))
        for highway in self.highways:
            x = highway(x)
        return self.projection(x).unflatten(0, char_ids.shape[:2])


class PeersCharacterCNN(nn.Module):
    """One `conv1d` per filter width, over the maximum number of characters."""

    def __init__(self, cnn: CharacterCNN) -> None:
        super().__init__()
        char_dim = cnn.embedding.embedding_dim
        no_token = torch.zeros(1, char_dim)
        self.embedding = _copy(torch.cat([no_token, cnn.embedding.weight.detach()]))
        self.kernels = nn.ParameterList(
            _copy(filters.weight.unflatten(1, (-1, char_dim)).transpose(1, 2))
            for filters in cnn.filters
        )
        self.biases = nn.ParameterList(_copy(filters.bias) for filters in cnn.filters)

    def forward(self, char_ids: Tensor) -> Tensor:
        """Reduce (B*T, C) ids to (B*T, F)."""
        chars = functional.embedding(char_ids, self.embedding).transpose(1, 2)  # (B*T, E, C)
        strongest = []
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            responses = functional.conv1d(chars, kernel, bias)
            strongest.append(responses.max(dim=2).values.relu())
        return torch.cat(strongest, dim=1)


class PeersHighway(nn.Module):
    """Compute transform and gate with one product of twice the width."""

    def __init__(self, highway: Highway) -> None:
        super().__init__()
        self.weight = _copy(torch.cat([highway.transform.weight, highway.gate.weight]))
        self.bias = _copy(torch.cat([highway.transform.bias, highway.gate.bias]))

    def forward(self, x: Tensor) -> Tensor:
        """Map (B*T, F) to (B*T, F)."""
        transformed, gate = functional.linear(x, self.weight, self.bias).chunk(2, dim=1)
        gate = gate.sigmoid()
        return gate * transformed.relu() + (1 - gate) * x


class PeersLSTM(nn.Module):
    """One layer of one direction, step by step."""

    def __init__(self, lstm: ProjectedLSTM, *, reads_backward: bool = False) -> None:
        super().__init__()
        assert lstm.projection_weight is not None
        self.input_weight = _copy(lstm.input_weight)
        self.state_weight = _copy(lstm.state_weight)
        bias = lstm.bias.detach().clone()
        bias.chunk(4)[1].add_(lstm.forget_bias)
        self.bias = nn.Parameter(bias)
        self.projection_weight = _copy(lstm.projection_weight)
        self.cell_clip = lstm.cell_clip
        self.output_clip = lstm.output_clip
        self.reads_backward = reads_backward

    def forward(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        """Map (B, T, D) to (B, T, D), the longest sentence first."""
        num_sentences, num_steps, _ = x.shape
        output_dim, cell_dim = self.projection_weight.shape
        outputs = x.new_zeros((num_sentences, num_steps, output_dim))
        hidden = x.new_zeros((num_sentences, output_dim))
        cell = x.new_zeros((num_sentences, cell_dim))
        steps = range(num_steps)
        for step in reversed(steps) if self.reads_backward else steps:
            num_active = sum(length > step for length in lengths)
            new_hidden, new_cell = self._step(
                x[:num_active, step], hidden[:num_active], cell[:num_active]
            )
            hidden, cell = hidden.clone(), cell.clone()
            hidden[:num_active] = new_hidden
            cell[:num_active] = new_cell
            outputs[:num_active, step] = new_hidden
        return outputs

    def _step(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        gates_of_input = functional.linear(x, self.input_weight).chunk(4, dim=1)
        gates_of_state = functional.linear(hidden, self.state_weight, self.bias).chunk(4, dim=1)
        write = torch.sigmoid(gates_of_input[0] + gates_of_state[0])
        keep = torch.sigmoid(gates_of_input[1] + gates_of_state[1])
        candidate = torch.tanh(gates_of_input[2] + gates_of_state[2])
        show = torch.sigmoid(gates_of_input[3] + gates_of_state[3])
        cell = write * candidate + keep * cell
        if self.cell_clip is not None:
            cell = cell.clamp(-self.cell_clip, self.cell_clip)
        hidden = functional.linear(show * torch.tanh(cell), self.projection_weight)
        if self.output_clip is not None:
            hidden = hidden.clamp(-self.output_clip, self.output_clip)
        return hidden, cell


def pad_sentences(sentences: Sequence[Sequence[str]], speller: Speller) -> tuple[Tensor, Tensor]:
    """Spell every token of every sentence, with markers; return (B, T, C) ids and (B,) lengths."""
    alphabet = speller.alphabet
    assert alphabet is not None
    rows = [
        [
            alphabet.spell_begin(),
            *(alphabet.spell(token) for token in sentence),
            alphabet.spell_end(),
        ]
        for sentence in sentences
    ]
    lengths = torch.tensor([len(row) for row in rows])
    char_ids = torch.full((len(rows), int(lengths.max()), alphabet.max_chars), NO_TOKEN)
    for row, spelled in enumerate(rows):
        char_ids[row, : len(spelled)] = torch.from_numpy(np.stack(spelled)) + 1
    return char_ids, lengths


def _copy(weight: Tensor) -> nn.Parameter:
    return nn.Parameter(weight.detach().clone(memory_format=torch.contiguous_format))

"""The bidirectional language model: one token encoder, and LSTMs that read it both ways.

Shapes: L LSTM layers, B sentences, N their tokens in all, D one direction, C cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmore.model.lstm import ProjectedLSTM
from elmore.model.packing import Packing, invert, pack
from elmore.model.state import BiLMState
from elmore.model.token_encoder import TokenEncoder
from elmore.text.batches import Batch


@dataclass(frozen=True, kw_only=True, slots=True)
class BiLMOutput:
    """Every layer of every token, sentence after sentence, markers included."""

    layers: Tensor  # (L + 1, N, 2D)
    state: BiLMState


class BiLM(nn.Module):
    """Read sentences left to right and right to left with separate LSTMs (Peters et al., 2018)."""

    def __init__(
        self,
        *,
        token_encoder: TokenEncoder,
        forward_lm: Sequence[ProjectedLSTM],
        backward_lm: Sequence[ProjectedLSTM],
        has_residuals: bool,
        output_dim: int,
        cell_dim: int,
    ) -> None:
        super().__init__()
        self.token_encoder = token_encoder
        self.forward_lm = nn.ModuleList(forward_lm)
        self.backward_lm = nn.ModuleList(backward_lm)
        self.has_residuals = has_residuals
        # Where every sentence starts from: zeros in published models.
        self.register_buffer("initial_hidden", torch.zeros(2, len(forward_lm), output_dim))
        self.register_buffer("initial_cell", torch.zeros(2, len(forward_lm), cell_dim))
        self.initial_hidden: Tensor
        self.initial_cell: Tensor

    @property
    def num_layers(self) -> int:
        """The LSTM layers, and the tokens below them."""
        return len(self.forward_lm) + 1

    @property
    def output_dim(self) -> int:
        """Both directions side by side."""
        return 2 * self.initial_hidden.shape[2]

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state in which sentences begin."""
        return BiLMState(
            hidden=self.initial_hidden.unsqueeze(2).expand(-1, -1, num_sentences, -1),
            cell=self.initial_cell.unsqueeze(2).expand(-1, -1, num_sentences, -1),
        )

    def forward(self, batch: Batch, state: BiLMState | None = None) -> BiLMOutput:
        """Run sentences from `state`, or from the initial state."""
        token_vectors = self.token_encoder(batch.tokens.char_ids, batch.tokens.word_ids)
        return self.contextualize(token_vectors[batch.positions], batch.lengths, state)

    def contextualize(
        self, tokens: Tensor, lengths: Tensor, state: BiLMState | None = None
    ) -> BiLMOutput:
        """Run the LSTMs over flat (N, D) token vectors of sentences of these (B,) lengths."""
        if state is None:
            state = self.initial_state(len(lengths))
        if len(lengths) == 0:
            empty = tokens.new_zeros((self.num_layers, 0, self.output_dim))
            return BiLMOutput(layers=empty, state=state)
        packing = pack(lengths, device=tokens.device)
        start = state[packing.order]
        forward_lm = self._read(self.forward_lm, tokens, packing.forward_lm, packing, start, 0)
        backward_lm = self._read(self.backward_lm, tokens, packing.backward_lm, packing, start, 1)
        final = BiLMState(
            hidden=torch.stack([forward_lm.hidden, backward_lm.hidden]),
            cell=torch.stack([forward_lm.cell, backward_lm.cell]),
        )
        return BiLMOutput(
            layers=torch.cat([forward_lm.layers, backward_lm.layers], dim=2),
            state=final[invert(packing.order)],
        )

    def _read(
        self,
        lstms: nn.ModuleList,
        tokens: Tensor,
        places: Tensor,
        packing: Packing,
        start: BiLMState,
        direction: int,
    ) -> "_Direction":
        """Run one direction; `places` says in which order it reads the tokens."""
        x = tokens[places]
        layers = [tokens]
        final_hidden, final_cell = [], []
        back_to_flat = invert(places)
        for depth, lstm in enumerate(lstms):
            output, hidden, cell = lstm(
                x, packing, start.hidden[direction, depth], start.cell[direction, depth]
            )
            # The residual is part of what the next layer reads, not of what this one remembers.
            x = output + x if self.has_residuals and depth > 0 else output
            layers.append(x[back_to_flat])
            final_hidden.append(hidden)
            final_cell.append(cell)
        return _Direction(
            layers=torch.stack(layers),
            hidden=torch.stack(final_hidden),
            cell=torch.stack(final_cell),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Direction:
    layers: Tensor  # (L + 1, N, D), flat
    hidden: Tensor  # (L, B, D), packed order
    cell: Tensor  # (L, B, C), packed order

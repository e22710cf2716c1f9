"""The bidirectional language model: one token encoder, and LSTMs that read it both ways.

Shapes: L LSTM layers, B sentences, N their tokens in all, D one direction, C cells.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn

from elmore.kernels.library import TORCH, Kernel, find_kernel
from elmore.kernels.reading import PackedReader, Reading
from elmore.kernels.threads import run_together_in_torch
from elmore.kernels.training import train_layer
from elmore.model.lstm import ProjectedLSTM
from elmore.model.packed_reader import pack_lstms, read_packed, version_of, weights_of
from elmore.model.packing import Packing, invert, pack
from elmore.model.state import BiLMState, repeat_state
from elmore.model.token_encoder import Highway, TokenEncoder
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
        self._packed: tuple[Any, PackedReader] | None = None

    @property
    def num_layers(self) -> int:
        """The LSTM layers, and the tokens below them."""
        return len(self.forward_lm) + 1

    @property
    def output_dim(self) -> int:
        """Both directions side by side."""
        return 2 * self.initial_hidden.shape[2]

    @property
    def directions(self) -> list[list[ProjectedLSTM]]:
        """The LSTM layers of the forward LM, and those of the backward LM."""
        return [
            [lstm for lstm in lstms if isinstance(lstm, ProjectedLSTM)]
            for lstms in (self.forward_lm, self.backward_lm)
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {**self.__dict__, "_packed": None}

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state in which sentences begin."""
        return repeat_state(self.initial_hidden, self.initial_cell, num_sentences)

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
        kernel = self.find_kernel() if tokens.dtype == torch.float32 else None
        if kernel is None:
            reading = self._read_with_torch(tokens, packing, start)
        elif self._needs_gradient(tokens, start):
            reading = self._read_for_gradient(kernel, tokens, packing, start)
        else:
            reading = read_packed(self._pack(kernel), tokens, packing, start)
        final = BiLMState(hidden=reading.hidden, cell=reading.cell)
        return BiLMOutput(layers=reading.layers, state=final[invert(packing.order)])

    def find_kernel(self) -> Kernel | None:
        """Return what computes single precision on the CPU; anything else is torch's."""
        weights = itertools.chain(self.parameters(), self.buffers())
        is_plain = all(w.dtype == torch.float32 and w.device.type == "cpu" for w in weights)
        return find_kernel() if is_plain and self._has_plain_layers() else None

    @property
    def kernel_name(self) -> str:
        """What computes: a kernel's name, or torch and, unless it is the CPU, the device."""
        kernel = self.find_kernel()
        if kernel is not None:
            return kernel.name
        device = self.initial_hidden.device.type
        return TORCH if device == "cpu" else f"{TORCH}-{device}"

    def _has_plain_layers(self) -> bool:
        """Whether no layer was wrapped, replaced or given a hook, which a kernel would pass by."""
        layers = [*self.forward_lm, *self.backward_lm, *self.token_encoder.highways]
        return all(
            type(layer) in (ProjectedLSTM, Highway)
            and not layer._forward_hooks
            and not layer._forward_pre_hooks
            and not layer._backward_hooks
            for layer in layers
        )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Forget the packed copy where torch moves or converts the weights."""
        self._packed = None
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _needs_gradient(self, tokens: Tensor, start: BiLMState) -> bool:
        return torch.is_grad_enabled() and any(
            tensor.requires_grad
            for tensor in (tokens, start.hidden, start.cell, *self._lstm_weights())
        )

    def _lstm_weights(self) -> Iterator[Tensor]:
        return itertools.chain(self.forward_lm.parameters(), self.backward_lm.parameters())

    def _read_for_gradient(
        self, kernel: Kernel, tokens: Tensor, packing: Packing, start: BiLMState
    ) -> Reading:
        """Run both directions of a layer together, layer by layer."""
        places = [packing.forward_lm, packing.backward_lm]
        back_to_flat = [invert(order) for order in places]
        inputs = [tokens[order] for order in places]
        layers = [torch.cat([tokens, tokens], dim=1)]
        states = []
        for depth, lstms in enumerate(zip(*self.directions, strict=True)):
            outputs = train_layer(
                kernel,
                [weights_of(lstm) for lstm in lstms],
                inputs,
                packing.step_sizes,
                start.hidden[:, depth].unbind(),
                start.cell[:, depth].unbind(),
            )
            has_residual = self.has_residuals and depth > 0
            inputs = [
                direction.outputs + x if has_residual else direction.outputs
                for direction, x in zip(outputs, inputs, strict=True)
            ]
            flat = [x[order] for x, order in zip(inputs, back_to_flat, strict=True)]
            layers.append(torch.cat(flat, dim=1))
            states.append(outputs)
        return Reading(
            layers=torch.stack(layers),
            hidden=_stack_directions([[d.hidden for d in layer] for layer in states]),
            cell=_stack_directions([[d.cell for d in layer] for layer in states]),
        )

    def _pack(self, kernel: Kernel) -> PackedReader:
        """Return the LSTMs as they are now, packed; the last copy is kept while it is true."""
        settings = [
            (lstm.cell_clip, lstm.output_clip, lstm.forget_bias)
            for lstms in self.directions
            for lstm in lstms
        ]
        version = (kernel.name, self.has_residuals, settings, version_of(self._lstm_weights()))
        kept = self._packed  # read once: another thread may replace it
        if kept is None or kept[0] != version:
            packed = pack_lstms(kernel, self.directions, has_residuals=self.has_residuals)
            kept = self._packed = (version, packed)
        return kept[1]

    def _read_with_torch(self, tokens: Tensor, packing: Packing, start: BiLMState) -> Reading:
        directions: dict[int, _Direction] = {}

        def read_direction(number: int) -> None:
            lstms = (self.forward_lm, self.backward_lm)[number]
            places = (packing.forward_lm, packing.backward_lm)[number]
            directions[number] = self._read(lstms, tokens, places, packing, start, number)

        calls = [partial(read_direction, number) for number in range(2)]
        if tokens.device.type == "cpu" and not self._needs_gradient(tokens, start):
            run_together_in_torch(*calls)
        else:  # autograd and other devices have an order and threads of their own
            for call in calls:
                call()
        return Reading(
            layers=torch.cat([directions[0].layers, directions[1].layers], dim=2),
            hidden=torch.stack([directions[0].hidden, directions[1].hidden]),
            cell=torch.stack([directions[0].cell, directions[1].cell]),
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
                x, packing.step_sizes, start.hidden[direction, depth], start.cell[direction, depth]
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


def _stack_directions(layers: Sequence[Sequence[Tensor]]) -> Tensor:
    """Stack L layers of two directions of (B, D): (2, L, B, D)."""
    return torch.stack([torch.stack(list(layer)) for layer in layers], dim=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Direction:
    layers: Tensor  # (L + 1, N, D), flat
    hidden: Tensor  # (L, B, D), packed order
    cell: Tensor  # (L, B, C), packed order

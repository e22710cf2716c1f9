"""The bidirectional language model: one token encoder, and LSTMs in both directions.

Shapes: L LSTM layers, B sentences, N tokens in total, D one direction, C cells.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn

from elmore.config import Precision
from elmore.kernels.library import TORCH, Kernel, find_kernel_for
from elmore.kernels.reading import PackableLayer, PackedReader
from elmore.kernels.threads import run_together_in_torch
from elmore.kernels.training import LayerOutput, train_layer
from elmore.model.layers import run_layers
from elmore.model.lstm import ProjectedLSTM, UnreadLayer
from elmore.model.packing import Packing, invert, read_packed, read_sentences
from elmore.model.state import BiLMOutput, BiLMState, repeat_state
from elmore.model.token_encoder import Highway, TokenEncoder
from elmore.text.batches import Batch, TokenIds


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
        # The state that every sentence starts from: zeros in published models.
        self.register_buffer("initial_hidden", torch.zeros(2, len(forward_lm), output_dim))
        self.register_buffer("initial_cell", torch.zeros(2, len(forward_lm), cell_dim))
        self.initial_hidden: Tensor
        self.initial_cell: Tensor
        self._packed: tuple[Any, PackedReader] | None = None

    @property
    def num_layers(self) -> int:
        """The LSTM layers and the token layer."""
        return len(self.forward_lm) + 1

    @property
    def output_dim(self) -> int:
        """The width of a layer: both directions."""
        return 2 * self.initial_hidden.shape[2]

    @property
    def directions(self) -> list[list[ProjectedLSTM]]:
        """The LSTM layers of the forward LM, and those of the backward LM."""
        return [
            [lstm for lstm in lstms if isinstance(lstm, ProjectedLSTM)]
            for lstms in (self.forward_lm, self.backward_lm)
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be recomputed."""
        return {**self.__dict__, "_packed": None}

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.initial_hidden.device

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state that sentences start from."""
        return repeat_state(self.initial_hidden, self.initial_cell, num_sentences)

    def forward(self, batch: Batch, state: BiLMState | None = None) -> BiLMOutput:
        """Run over sentences from `state`, by default the initial state."""
        token_vectors = self.encode(batch.tokens)
        return self.contextualize(token_vectors[batch.positions], batch.lengths, state)

    def encode(self, ids: TokenIds) -> Tensor:
        """Return the (U, D) context-free vectors of distinct tokens."""
        return self.token_encoder(ids.char_ids, ids.word_ids)

    def contextualize(
        self, tokens: Tensor, lengths: Tensor, state: BiLMState | None = None
    ) -> BiLMOutput:
        """Run the LSTMs over flat (N, D) token vectors of sentences with these (B,) lengths."""
        start = self.initial_state(len(lengths)) if state is None else state
        return read_sentences(self._read, tokens, lengths, start, num_layers=self.num_layers)

    def _read(self, tokens: Tensor, packing: Packing, start: BiLMState) -> BiLMOutput:
        """Use packed weights if possible, and a layer-by-layer loop for gradients or torch."""
        kernel = self.find_kernel([tokens])
        if kernel is not None and not self._needs_gradient(tokens, start):
            return read_packed(self._pack(kernel), tokens, packing, start)
        orders = [packing.forward_lm, packing.backward_lm]
        outputs, final = run_layers(
            [tokens[order] for order in orders],
            partial(self.read_layer, step_sizes=packing.step_sizes, start=start),
            num_layers=len(self.forward_lm),
            has_residuals=self.has_residuals,
        )
        back_to_flat = [invert(order) for order in orders]
        layers = [torch.cat([tokens, tokens], dim=1)]
        for directions in outputs:
            flat = [x[order] for x, order in zip(directions, back_to_flat, strict=True)]
            layers.append(torch.cat(flat, dim=1))
        return BiLMOutput(layers=torch.stack(layers), state=final)

    def read_layer(
        self,
        depth: int,
        inputs: Sequence[Tensor],
        *,
        step_sizes: Sequence[int],
        start: BiLMState,
        precision: Precision = Precision.F32,
    ) -> Sequence[LayerOutput]:
        """Run one layer of both directions on packed (N, D) inputs; supports gradients.

        `precision` is for the kernel's products; for those of torch, use autocast.
        """
        hidden, cell = start.hidden[:, depth].unbind(), start.cell[:, depth].unbind()
        kernel = self.find_kernel(inputs)
        if kernel is not None:
            weights = [direction[depth].kernel_weights() for direction in self.directions]
            return train_layer(
                kernel, weights, inputs, step_sizes, hidden, cell, precision=precision
            )
        results: dict[int, LayerOutput] = {}

        def read_direction(number: int) -> None:
            # Use the module lists: their layers may be wrapped.
            lstm = (self.forward_lm, self.backward_lm)[number][depth]
            outputs, last_hidden, last_cell = lstm(
                inputs[number], step_sizes, hidden[number], cell[number]
            )
            results[number] = LayerOutput(outputs=outputs, hidden=last_hidden, cell=last_cell)

        calls = [partial(read_direction, number) for number in range(2)]
        if inputs[0].device.type == "cpu" and not self._needs_gradient(*inputs, start):
            run_together_in_torch(*calls)
        else:  # autograd and other devices schedule on their own
            for call in calls:
                call()
        return [results[0], results[1]]

    def find_kernel(self, inputs: Sequence[Tensor] = ()) -> Kernel | None:
        """Return the kernel to use for these inputs, or None for torch."""
        tensors = itertools.chain(inputs, self.parameters(), self.buffers())
        kernel = find_kernel_for(tensors)
        return kernel if kernel is not None and self.has_plain_layers() else None

    @property
    def kernel_name(self) -> str:
        """The kernel in use; for torch on another device than the CPU, also the device."""
        kernel = self.find_kernel()
        if kernel is not None:
            return kernel.name
        device = self.initial_hidden.device.type
        return TORCH if device == "cpu" else f"{TORCH}-{device}"

    def has_plain_layers(self) -> bool:
        """Return whether no layer is wrapped, replaced or hooked; a kernel would ignore that."""
        layers = [*self.forward_lm, *self.backward_lm, *self.token_encoder.highways]
        return all(
            type(layer) in (ProjectedLSTM, Highway)
            and not layer._forward_hooks
            and not layer._forward_pre_hooks
            and not layer._backward_hooks
            for layer in layers
        )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Drop the packed copy when torch moves or converts the weights."""
        self._packed = None
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _needs_gradient(self, *inputs: Tensor | BiLMState) -> bool:
        return torch.is_grad_enabled() and any(
            tensor.requires_grad
            for item in (*inputs, *self._lstm_weights())
            for tensor in ((item.hidden, item.cell) if isinstance(item, BiLMState) else (item,))
        )

    def _lstm_weights(self) -> Iterator[Tensor]:
        return itertools.chain(self.forward_lm.parameters(), self.backward_lm.parameters())

    @torch.no_grad()
    def pack_lstms(
        self,
        kernel: Kernel,
        *,
        precision: Precision = Precision.F32,
        take: Callable[[str], Tensor] | None = None,
    ) -> PackedReader:
        """Return a copy of the LSTMs, packed for a kernel.

        If given, `take` reads the weight of a name, and the biLM's own are not used.
        """

        def find_weights(name: str, depth: int, lstm: ProjectedLSTM) -> PackableLayer:
            if take is None:
                return lstm.kernel_weights()
            return UnreadLayer(lstm=lstm, take=lambda weight: take(f"{name}.{depth}.{weight}"))

        return PackedReader(
            kernel,
            [
                [find_weights(name, depth, lstm) for depth, lstm in enumerate(lstms)]
                for name, lstms in zip(("forward_lm", "backward_lm"), self.directions, strict=True)
            ],
            precision=precision,
            has_residuals=self.has_residuals,
        )

    def _pack(self, kernel: Kernel) -> PackedReader:
        """Return the packed LSTMs; the last copy is reused until a weight changes."""
        settings = [
            (lstm.cell_clip, lstm.output_clip, lstm.forget_bias)
            for lstms in self.directions
            for lstm in lstms
        ]
        version = (kernel.name, self.has_residuals, settings, version_of(self._lstm_weights()))
        kept = self._packed  # read once: another thread may replace it
        if kept is None or kept[0] != version:
            kept = self._packed = (version, self.pack_lstms(kernel))
        return kept[1]


def version_of(weights: Iterable[Tensor]) -> list[Hashable]:
    """Return a value that changes with the weights: torch's version counter and a sample.

    The counter misses writes through `.data` or a numpy array. The sample catches those, unless
    only a few single numbers were written.
    """
    return [
        (
            weight.data_ptr(),
            -1 if weight.is_inference() else weight._version,
            weight.detach().flatten()[:: weight.numel() // 64 + 1].numpy().tobytes(),
        )
        for weight in weights
    ]

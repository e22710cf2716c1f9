"""A biLM for inference: weights packed for the native kernel, in one of three precisions.

If there is no kernel for this machine, torch is used with weights rounded the same way. The vectors
are the same, but it is neither faster nor smaller.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from elmore.config import Precision
from elmore.kernels.library import Kernel, find_kernel
from elmore.kernels.threads import reserve_queues
from elmore.kernels.tokens import PackedHighway, PackedLinear
from elmore.model.bilm import BiLM
from elmore.model.char_table import strongest_responses
from elmore.model.lstm import ProjectedLSTM
from elmore.model.packing import QueuedReading, read_packed, read_sentences
from elmore.model.state import BiLMOutput, BiLMState, repeat_state
from elmore.model.token_encoder import CharacterCNN, TokenEncoder, check_ids
from elmore.text.batches import TokenIds

Take = Callable[[str], Tensor]
Module = TypeVar("Module", bound=nn.Module | None)


def freeze(
    bilm: BiLM, *, precision: Precision = Precision.F32, take: Take | None = None
) -> "BiLM | PackedBiLM":
    """Return a copy of the biLM for inference in some precision; the biLM is not changed.

    If its weights are still in a file, `take` reads one, by name. Each is packed and freed before
    the next one is read. Without a kernel, all are given to the biLM.
    """
    if take is None:
        kernel = bilm.find_kernel()
    else:
        kernel = find_kernel() if bilm.has_plain_layers() else None
    if kernel is not None:
        return PackedBiLM(bilm, kernel, precision=precision, take=take)
    if take is not None:
        bilm.load_state_dict({name: take(name) for name in bilm.state_dict()}, assign=True)
    return bilm if precision is Precision.F32 else round_weights(deepcopy(bilm), precision)


class KeptCharacters:
    """A `CharacterCNN` whose weights do not change, with tables of all units.

    The same bits, but except for `tanh` without torch: it would wake up its threads for the few
    new tokens of a sentence, and they wait for each other for milliseconds if the machine is busy.
    """

    def __init__(self, characters: CharacterCNN) -> None:
        self.num_units = characters.embedding.num_embeddings
        self.tables = characters.make_all_tables()
        self.bias = characters.joined_bias().detach().clone()
        self.uses_tanh = characters.activate_ is torch.tanh_

    def __call__(self, char_ids: Tensor) -> Tensor:
        """Reduce (U, C) character ids to (U, F)."""
        ids = char_ids.numpy()
        check_ids(ids, num_units=self.num_units)
        is_content = ids != ids[:, -1:]
        num_positions = (is_content * np.arange(1, ids.shape[1] + 1)).max(axis=1, initial=0) + 1
        strongest = strongest_responses(char_ids, torch.from_numpy(num_positions), self.tables)
        responses = strongest.numpy()
        responses += self.bias.numpy()
        if self.uses_tanh:
            return strongest.tanh_()
        np.maximum(responses, 0, out=responses)
        return strongest


class PackedTokenEncoder:
    """A token encoder with packed matrices."""

    @torch.no_grad()
    def __init__(
        self,
        encoder: TokenEncoder,
        kernel: Kernel,
        *,
        precision: Precision,
        take: Take,
    ) -> None:
        def take_linear(name: str) -> Iterator[Tensor]:
            return (take(f"token_encoder.{name}.{part}") for part in ("weight", "bias"))

        # In the order of their names, in which they are read from a file.
        characters = _copy(encoder.characters, "token_encoder.characters", take)
        self.characters = (
            KeptCharacters(characters)
            if isinstance(characters, CharacterCNN) and characters.can_be_kept
            else characters
        )
        self.highways = [
            PackedHighway(
                kernel,
                transform=take_linear(f"highways.{depth}.transform"),
                gate=take_linear(f"highways.{depth}.gate"),
                precision=precision,
            )
            for depth in range(len(encoder.highways))
        ]
        self.projection = (
            None
            if encoder.projection is None
            else PackedLinear(kernel, *take_linear("projection"), precision=precision)
        )
        self.words = _copy(encoder.words, "token_encoder.words", take)

    @torch.no_grad()
    def __call__(self, char_ids: Tensor | None, word_ids: Tensor | None) -> Tensor:
        """Encode (U, C) character ids, (U,) word ids or both as (U, D)."""
        parts = []
        if self.words is not None:
            assert word_ids is not None
            parts.append(self.words(word_ids))
        if self.characters is not None:
            assert char_ids is not None
            x = self.characters(char_ids)
            for highway in self.highways:
                x = highway.apply(x)
            parts.append(x)
        tokens = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return tokens if self.projection is None else self.projection.apply(tokens)


class PackedBiLM:
    """A `BiLM` for inference only."""

    def __init__(
        self, bilm: BiLM, kernel: Kernel, *, precision: Precision, take: Take | None = None
    ) -> None:
        self._lstms = bilm.pack_lstms(kernel, precision=precision, take=take)
        take = bilm.state_dict().__getitem__ if take is None else take
        self.initial_cell = take("initial_cell").clone()
        self.initial_hidden = take("initial_hidden").clone()
        self.token_encoder = PackedTokenEncoder(
            bilm.token_encoder, kernel, precision=precision, take=take
        )
        self.num_layers = bilm.num_layers
        self.output_dim = bilm.output_dim
        self.precision = precision

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.initial_hidden.device

    def encode(self, ids: TokenIds) -> Tensor:
        """Return the (U, D) context-free vectors of distinct tokens."""
        return self.token_encoder(ids.char_ids, ids.word_ids)

    @property
    def kernel_name(self) -> str:
        """The kernel in use."""
        return self._lstms.kernel_name

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state that sentences start from."""
        return repeat_state(self.initial_hidden, self.initial_cell, num_sentences)

    def contextualize(
        self, tokens: Tensor, lengths: Tensor, state: BiLMState | None = None
    ) -> BiLMOutput:
        """Run the LSTMs over flat (N, D) token vectors of sentences with these (B,) lengths."""
        start = self.initial_state(len(lengths)) if state is None else state
        read = partial(read_packed, self._lstms)
        return read_sentences(read, tokens, lengths, start, num_layers=self.num_layers)

    @contextmanager
    def read_ahead(
        self,
    ) -> Iterator[Callable[[Tensor, Tensor, BiLMState | None], QueuedReading] | None]:
        """Give a function that starts `contextualize` in other threads.

        None with a single thread, or while another caller reads ahead.
        """
        with reserve_queues() as queues:
            if queues is None:
                yield None
                return

            def start(tokens: Tensor, lengths: Tensor, state: BiLMState | None) -> QueuedReading:
                first = self.initial_state(len(lengths)) if state is None else state
                return QueuedReading(self._lstms, queues, tokens, lengths, first)

            yield start


def _copy(module: Module, name: str, take: Take) -> Module:
    """Return a copy of a module, with its weights if they were in a file."""
    copied = deepcopy(module)
    if copied is not None and any(weight.is_meta for weight in copied.parameters()):
        weights = {key: take(f"{name}.{key}").clone() for key in copied.state_dict()}
        copied.load_state_dict(weights, assign=True)
    return copied


@torch.no_grad()
def round_weights(bilm: BiLM, precision: Precision) -> BiLM:
    """Round the matrices that kernels would pack to their values in that precision."""
    for weight in _large_matrices(bilm):
        match precision:
            case Precision.BF16:
                weight.copy_(weight.to(torch.bfloat16))
            case Precision.INT8:
                scale = weight.abs().amax(dim=1, keepdim=True) / 127
                scale[scale == 0] = 1
                weight.copy_((weight / scale).round() * scale)
    return bilm


def _large_matrices(bilm: BiLM) -> Iterator[Tensor]:
    for module in bilm.modules():
        if isinstance(module, ProjectedLSTM):
            yield from (module.input_weight, module.state_weight)
            if module.projection_weight is not None:
                yield module.projection_weight
    encoder = bilm.token_encoder
    for layer in [*encoder.highways.modules(), encoder.projection]:
        if isinstance(layer, nn.Linear):
            yield layer.weight

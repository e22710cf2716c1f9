"""The biLM as AllenNLP's modules: character ids in, padded layers or their mixes out.

Shapes: B sentences, T tokens in the longest, D both directions of one layer.
"""

import json
import logging
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import elmore
from elmore import load_model
from elmore.compat.allennlp.common.checks import ConfigurationError
from elmore.compat.allennlp.data.token_indexers.elmo_indexer import ALPHABET
from elmore.compat.allennlp.modules.scalar_mix import ScalarMix
from elmore.compat.allennlp.nn.util import remove_sentence_boundaries
from elmore.compat.carried_state import CarriedState
from elmore.compat.model_files import find_file
from elmore.compat.padding import drop_ends, pad
from elmore.compat.weight_names import use_old_names

__all__ = ["Elmo", "_ElmoBiLm", "_ElmoCharacterEncoder", "batch_to_ids"]

logger = logging.getLogger(__name__)


class Elmo(nn.Module):
    """`num_output_representations` learned mixes of the biLM's layers."""

    def __init__(
        self,
        options_file: str | None,
        weight_file: str | None,
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: Sequence[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Sequence[float] | None = None,
        module: nn.Module | None = None,
        *,
        policy: str = "stream",
    ) -> None:
        super().__init__()
        if module is not None and (options_file is not None or weight_file is not None):
            raise ConfigurationError("with module, options_file and weight_file must be None")
        if module is None:
            module = _ElmoBiLm(
                options_file, weight_file, requires_grad, vocab_to_cache, policy=policy
            )
        self._elmo_lstm: Any = module
        self._has_cached_vocab = vocab_to_cache is not None
        self._keep_sentence_boundaries = keep_sentence_boundaries
        self._dropout = nn.Dropout(dropout)
        self._scalar_mixes: list[ScalarMix] = []
        for number in range(num_output_representations):
            mix = ScalarMix(
                int(self._elmo_lstm.num_layers),  # type: ignore[arg-type]
                do_layer_norm=do_layer_norm,
                initial_scalar_parameters=scalar_mix_parameters,
                trainable=scalar_mix_parameters is None,
            )
            self.add_module(f"scalar_mix_{number}", mix)
            self._scalar_mixes.append(mix)

    def get_output_dim(self) -> int:
        """Return D."""
        return self._elmo_lstm.get_output_dim()

    def forward(
        self, inputs: Tensor, word_inputs: Tensor | None = None
    ) -> dict[str, Tensor | list[Tensor]]:
        """Return `elmo_representations`, a list of (B, T, D), and their int64 `mask` (B, T).

        `inputs` are (B, T, 50) character ids with any further dimensions in front, `word_inputs`
        the (B, T) ids of cached words.
        """
        shape = inputs.shape[:-1] if word_inputs is None else word_inputs.shape
        if word_inputs is not None and not self._has_cached_vocab:
            logger.warning("word_inputs are ignored, because there is no vocab_to_cache")
            word_inputs = None
        mixed, mask = self._mix(
            inputs.flatten(0, -3), None if word_inputs is None else word_inputs.flatten(0, -2)
        )
        mixed = [self._dropout(tensor) for tensor in mixed]
        if len(shape) > 2:
            mask, mixed = mask.view(shape), [tensor.view(*shape, -1) for tensor in mixed]
        return {"elmo_representations": mixed, "mask": mask}

    def _mix(self, inputs: Tensor, words: Tensor | None) -> tuple[list[Tensor], Tensor]:
        # The list keeps the modules of the original when DataParallel makes replicas.
        mixes = [getattr(self, f"scalar_mix_{k}") for k in range(len(self._scalar_mixes))]
        if isinstance(self._elmo_lstm, _ElmoBiLm) and not self._keep_sentence_boundaries:
            # Padding one mix is faster than mixing padded layers.
            layers, lengths, width = self._elmo_lstm.read(inputs, words)
            is_real = torch.ones(layers.shape[1], dtype=torch.bool, device=layers.device)
            flat = torch.stack([mix(layers, is_real) for mix in mixes])
            padded, mask = pad(drop_ends(flat, lengths), lengths - 2, width=width)
            return list(padded), mask.long()
        output = self._elmo_lstm(inputs, words)
        mask = output["mask"]
        mixed = [mix(output["activations"], mask) for mix in mixes]
        if self._keep_sentence_boundaries:
            return mixed, mask
        dropped = [remove_sentence_boundaries(tensor, mask) for tensor in mixed]
        return [tensor for tensor, _ in dropped], dropped[0][1]


def batch_to_ids(batch: Sequence[Sequence[str]]) -> Tensor:
    """Return the (B, T, 50) int64 character ids of tokenized sentences, padded with 0."""
    numbers = {token: number for number, token in enumerate(dict.fromkeys(chain(*batch)))}
    spelled = ALPHABET.spell_all(list(numbers)) + 1
    width = max(map(len, batch), default=0)
    ids = np.zeros((len(batch), width, ALPHABET.max_chars), np.int64)
    for row, sentence in enumerate(batch):
        ids[row, : len(sentence)] = spelled[[numbers[token] for token in sentence]]
    return torch.from_numpy(ids)


class _ElmoCharacterEncoder(nn.Module):
    """Context-free vectors of tokens and sentence markers."""

    def __init__(
        self,
        options_file: str | None,
        weight_file: str | None,
        requires_grad: bool = False,
        *,
        policy: str = "stream",
    ) -> None:
        super().__init__()
        self.requires_grad = requires_grad
        self._elmo = elmore.Elmo(
            load_model(find_file(weight_file), options=find_file(options_file)),
            num_representations=0,
            trains_bilm=requires_grad,
            state=policy,
        )
        self.output_dim = self._elmo.bilm.output_dim // 2

    def get_output_dim(self) -> int:
        """Return the width of one direction."""
        return self.output_dim

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        """Return `token_embedding` (B, T + 2, D / 2) for (B, T, 50) ids, and the int64 `mask`."""
        tokens, lengths = self._elmo.encode(inputs)
        vectors, mask = pad(tokens, lengths, width=inputs.shape[1] + 2)
        filled = vectors.where(mask[..., None], self._elmo.encode_padding())
        return {"mask": mask.long(), "token_embedding": filled}


class _ElmoBiLm(nn.Module):
    """All layers of the biLM, padded, with sentence markers."""

    def __init__(
        self,
        options_file: str | None,
        weight_file: str | None,
        requires_grad: bool = False,
        vocab_to_cache: Sequence[str] | None = None,
        *,
        policy: str = "stream",
    ) -> None:
        super().__init__()
        self._token_embedder = _ElmoCharacterEncoder(
            options_file, weight_file, requires_grad, policy=policy
        )
        options = json.loads(find_file(options_file).read_text())
        if not options["lstm"].get("use_skip_connections"):
            raise ConfigurationError(
                "AllenNLP supports only biLMs with residual connections; elmore.load supports all"
            )
        self._elmo_lstm = CarriedState(self._token_embedder._elmo)
        self._word_embedding: nn.Embedding | None = None
        self.num_layers: int = self._token_embedder._elmo.bilm.num_layers
        use_old_names(self)
        if vocab_to_cache:
            if requires_grad:
                logger.warning("fine-tuning ELMo does not change the cached vectors of other words")
            self.create_cached_cnn_embeddings(vocab_to_cache)

    def get_output_dim(self) -> int:
        """Return D."""
        return 2 * self._token_embedder.get_output_dim()

    def forward(
        self, inputs: Tensor, word_inputs: Tensor | None = None
    ) -> dict[str, Tensor | list[Tensor]]:
        """Return the `activations`, one (B, T + 2, D) per layer, and their int64 `mask`.

        If all `word_inputs` (B, T) are cached, the character ids `inputs` (B, T, 50) are not used.
        """
        layers, lengths, width = self.read(inputs, word_inputs)
        padded, mask = pad(layers, lengths, width=width + 2)
        return {"activations": list(padded), "mask": mask.long()}

    def read(self, inputs: Tensor, words: Tensor | None = None) -> tuple[Tensor, Tensor, int]:
        """Return flat layers (L, N, D) with markers, (B,) lengths, and T; carries the state."""
        tokens = self._look_up(words)
        width = inputs.shape[1] if tokens is None or words is None else words.shape[1]
        vectors, lengths = tokens or self._token_embedder._elmo.encode(inputs)
        return self._token_embedder._elmo.contextualize(vectors, lengths), lengths, width

    def create_cached_cnn_embeddings(self, tokens: Sequence[str]) -> None:
        """Compute the context-free vectors of `tokens` once; id 0 is padding."""
        vectors, _ = self._token_embedder._elmo.encode(batch_to_ids([tokens]))
        begin, *_, end = vectors = vectors.detach().clone()
        self._bos_embedding, self._eos_embedding = begin, end
        vectors[1] = 0
        self._word_embedding = nn.Embedding.from_pretrained(
            vectors[1:-1], freeze=not self._token_embedder.requires_grad, padding_idx=0
        )

    def _look_up(self, words: Tensor | None) -> tuple[Tensor, Tensor] | None:
        """Return cached vectors as `Elmo.encode` does, or None if some are missing."""
        if self._word_embedding is None or words is None:
            return None
        if words.numel() and int(words.max()) >= self._word_embedding.num_embeddings:
            return None
        begin, end = self._bos_embedding[None], self._eos_embedding[None]
        counts = (words > 0).sum(dim=1).cpu()
        sentences = [
            torch.cat([begin.to(row), row[:count], end.to(row)])
            for row, count in zip(self._word_embedding(words), counts.tolist(), strict=True)
        ]
        return torch.cat(sentences), counts + 2

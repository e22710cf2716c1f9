"""ELMo as an input module of sentence-transformers: text in, one vector per token out.

Shapes: L layers, B texts, T tokens in the longest, W characters in the longest token, D one vector.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from elmore import Elmo, ElmoreError, Embedder, ScalarMix, load, load_model, require_extra, tokenize

require_extra("sentence-transformers", needed_for="elmore.integrations.sentence_transformers")

from sentence_transformers.base.modules import InputModule  # noqa: E402

BILM = "bilm"
MIX = "mix.safetensors"

Features = dict[str, Any]


class ElmoreTokens(InputModule):  # type: ignore[misc]
    """A vector of every token: a biLM, and a mix of its layers.

    `model` is what `elmore.load` accepts. Texts are split into tokens by the rules of `language`
    and are not shortened unless `max_seq_length` is given. Training changes the mix, unless
    `trains_mix` is false, and the biLM only if `trains_bilm` is true. The vectors of a frozen biLM
    are those of `Embedder.embed` with the same mix, bit for bit.
    """

    config_keys = ("language", "max_seq_length", "trains_bilm", "trains_mix", "dropout")
    save_in_root = False

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        language: str = "en",
        max_seq_length: int | None = None,
        trains_bilm: bool = False,
        trains_mix: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        tokenize("", language=language)  # report an unknown language now
        self.language = language
        self.max_seq_length = max_seq_length
        self.trains_bilm = trains_bilm
        self.trains_mix = trains_mix
        self.dropout = dropout
        self.bilm: Elmo | Embedder
        if trains_bilm:
            self.bilm = Elmo(load_model(model), num_representations=0, trains_bilm=True)
            num_layers = self.bilm.bilm.num_layers
        else:
            self.bilm = load(model)
            num_layers = self.bilm.num_layers
        self.mix = ScalarMix(num_layers=num_layers, trainable=trains_mix, dropout=dropout)

    def get_embedding_dimension(self) -> int:
        """Return D, for `Pooling`."""
        return self.bilm.output_dim if isinstance(self.bilm, Elmo) else self.bilm.vector_dim

    def preprocess(
        self,
        inputs: Sequence[Any],
        prompt: str | None = None,
        *,
        max_length: int | None = None,
        **_settings: Any,
    ) -> Features:
        """Split texts into tokens; `prompt` is put before each of them."""
        sentences = [self._split((prompt or "") + _check_text(text)) for text in inputs]
        limit = max_length or self.max_seq_length
        ids, mask = spell_padded([tokens[:limit] for tokens in sentences])
        features: Features = {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)),
        }
        if prompt:
            features["prompt_length"] = len(self._split(prompt))
        return features

    def _split(self, text: str) -> list[str]:
        return tokenize(text, language=self.language)

    def forward(self, features: Features, **_settings: Any) -> Features:
        """Add `token_embeddings`, (B, T, D)."""
        ids: Tensor = features["input_ids"]
        if isinstance(self.bilm, Embedder) and self.bilm.device != ids.device:
            self.bilm.to(ids.device)
        sentences = self._read(read_padded(ids.cpu().numpy()))
        vectors = pad_sequence([self.mix(layers) for layers in sentences], batch_first=True)
        features["token_embeddings"] = pad(vectors, (0, 0, 0, ids.shape[1] - vectors.shape[1]))
        return features

    def _read(self, sentences: list[list[str]]) -> list[Tensor]:
        """Return (L, T, D) of each sentence."""
        if isinstance(self.bilm, Embedder):
            return self.bilm.embed(sentences, layers="all", output="torch")
        tokens, lengths = self.bilm.encode(sentences)
        layers = self.bilm.contextualize(tokens, lengths)
        return [part[:, 1:-1] for part in layers.split(lengths.tolist(), dim=1)]  # no markers

    def save(self, output_path: str, *_: Any, **_settings: Any) -> None:
        """Write the settings, the biLM as a model folder, and the mix."""
        folder = Path(output_path)
        self.save_config(output_path)
        if isinstance(self.bilm, Embedder):
            self.bilm.load_model().save_pretrained(folder / BILM)
        else:
            self.bilm.save(folder / BILM)
        save_file(self.mix.state_dict(), folder / MIX)

    @classmethod
    def load(cls, model_name_or_path: str, **hub_options: Any) -> Self:
        """Load what `save` wrote, from a folder or the hub."""
        names = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
        options = {name: hub_options[name] for name in names if name in hub_options}
        folder = Path(cls.load_dir_path(model_name_or_path, **options))
        module = cls(folder / BILM, **cls.load_config(model_name_or_path, **options))
        module.mix.load_state_dict(load_file(folder / MIX))
        return module


def _check_text(text: Any) -> str:
    if not isinstance(text, str):
        raise ElmoreError(
            f"got {text!r:.60} where a text was expected; ElmoreTokens reads strings only"
        )
    return text


def spell_padded(
    sentences: Sequence[Sequence[str]],
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the (B, T, W) code points of tokens, each plus 1, and the (B, T) mask; 0 is padding.

    sentence-transformers moves, cuts and joins batches of tensors, so tokens travel as numbers.
    """
    num_tokens = np.array([len(sentence) for sentence in sentences])
    tokens = [token for sentence in sentences for token in sentence]
    num_chars = np.array([len(token) for token in tokens], dtype=np.int64)
    width = int(num_chars.max(initial=1))
    # numpy's strings are arrays of code points.
    points = np.array(tokens, dtype=f"<U{width}").view("<i4").reshape(len(tokens), width) + 1
    points[np.arange(width) >= num_chars[:, None]] = 0
    mask = np.arange(max(1, num_tokens.max(initial=0))) < num_tokens[:, None]
    ids = np.zeros((*mask.shape, width), dtype=np.int32)
    ids[mask] = points
    return ids, mask


def read_padded(ids: NDArray[np.int32]) -> list[list[str]]:
    """Return the tokens of `spell_padded`."""
    num_chars = (ids > 0).sum(axis=2)
    points = np.ascontiguousarray(np.maximum(ids - 1, 0), dtype="<i4")
    padded = points.view(f"<U{ids.shape[2]}")[..., 0].tolist()
    return [
        # numpy drops NULs at the end of a string.
        [token.ljust(length, "\0") for token, length in zip(row, lengths, strict=True) if length]
        for row, lengths in zip(padded, num_chars.tolist(), strict=True)
    ]

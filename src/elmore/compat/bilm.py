"""bilm-tf's functions without TensorFlow: arrays in, arrays out.

LSTM state is carried from call to call. Placeholders of `elmore.compat.tensorflow` work too: as in
TensorFlow, each has a state of its own, which its session keeps. The additional keyword
`policy="reset"` starts every sentence from the initial state.

Shapes: B sentences, T tokens in the longest, C characters, L layers, D both directions of a layer.
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore import ByteAlphabet, Elmo, ElmoreError, load_model
from elmore.compat.deferred import Deferred, Recurrent
from elmore.compat.padding import drop_ends, pad

Array = NDArray[Any]
Sentences = Sequence[Sequence[str]]

__all__ = [
    "Batcher",
    "BidirectionalLanguageModel",
    "TokenBatcher",
    "dump_bilm_embeddings",
    "dump_token_embeddings",
    "weight_layers",
]


OUTPUTS = ("lm_embeddings", "lengths", "token_embeddings", "mask")


class Batcher:
    """Converts tokens to character ids, 1 higher than the bytes because 0 is padding.

    As in bilm-tf, if the vocabulary has no `</S>`, its last word is spelled as one.
    """

    def __init__(self, lm_vocab_file: str | Path | None, max_token_length: int) -> None:
        self._alphabet = ByteAlphabet(max_chars=max_token_length, splits_characters=True)
        words = _read_words(lm_vocab_file)
        self._markers = {words[_find(words, marker)]: marker for marker in ("<S>", "</S>")}

    def batch_sentences(self, sentences: Sentences) -> Array:
        """Return (B, T + 2, C) int64 ids with sentence markers."""
        marked = [["<S>", *sentence, "</S>"] for sentence in sentences]
        distinct = {token: number for number, token in enumerate({t: 0 for s in marked for t in s})}
        spelled = self._alphabet.spell_all([self._markers.get(t, t) for t in distinct]) + 1
        ids = np.zeros((len(marked), max(map(len, marked)), spelled.shape[1]), np.int64)
        for row, sentence in enumerate(marked):
            ids[row, : len(sentence)] = spelled[[distinct[token] for token in sentence]]
        return ids


class TokenBatcher:
    """Converts tokens to their line numbers in a vocabulary, from 1 because 0 is padding."""

    def __init__(self, lm_vocab_file: str | Path) -> None:
        words = _read_words(lm_vocab_file)
        self._ids = {word: number for number, word in enumerate(words)}
        self._markers = [self._ids.get(word, -1) for word in ("<S>", "</S>", "<UNK>")]

    def batch_sentences(self, sentences: Sentences) -> Array:
        """Return (B, T + 2) int64 ids with sentence markers."""
        begin, end, unknown = self._markers
        ids = np.zeros((len(sentences), max(map(len, sentences)) + 2), np.int64)
        for row, sentence in enumerate(sentences):
            numbers = [begin, *(self._ids.get(token, unknown) for token in sentence), end]
            ids[row, : len(numbers)] = np.array(numbers) + 1
        return ids


class BidirectionalLanguageModel:
    """All layers of batches from a `Batcher`, or with `embedding_weight_file` a `TokenBatcher`."""

    def __init__(
        self,
        options_file: str | Path | None,
        weight_file: str | Path,
        use_character_inputs: bool = True,
        embedding_weight_file: str | Path | None = None,
        max_batch_size: int = 128,
        *,
        policy: str = "stream",
    ) -> None:
        if not use_character_inputs and embedding_weight_file is None:
            raise ValueError("embedding_weight_file is required without use_character_inputs")
        model = load_model(weight_file, options=options_file)
        self.config = model.config
        self._elmo = Elmo(model, num_representations=0, state=policy)
        self._max_batch_size = max_batch_size
        self._embedding: Tensor | None = None
        if use_character_inputs:
            self.padding = self._elmo.encode_padding()
        else:
            with h5py.File(embedding_weight_file) as file:
                vectors = torch.from_numpy(file["embedding"][...])
            self.padding = torch.zeros_like(vectors[0])
            self._embedding = torch.cat([self.padding[None], vectors])
        self._deferred: dict[Deferred, dict[str, Deferred]] = {}

    def __call__(self, ids_placeholder: Any) -> dict[str, Any]:
        """Return `lm_embeddings` (B, L, T, D), `token_embeddings`, `lengths` and `mask` (B, T).

        As in bilm-tf, layer 0 is not zero at padding, but the vector of a token without
        characters; `token_embeddings` (B, T + 2, D / 2) include the sentence markers. For a
        placeholder, the results are deferred.
        """
        ids = ids_placeholder
        if not isinstance(ids, Deferred):
            return self._embed(_read_ids(ids))
        if ids not in self._deferred:
            results = Recurrent(self._continue, ids)
            self._deferred[ids] = {name: results[name] for name in OUTPUTS}
        return self._deferred[ids]

    def _continue(self, ids: Any, state: Any) -> tuple[dict[str, Array], Any]:
        """Return the vectors of a batch that starts from a state, and the state after it."""
        self._elmo.carried_state = state
        return self._embed(_read_ids(ids)), self._elmo.carried_state

    def _embed(self, ids: Array) -> dict[str, Array]:
        tokens, layers, lengths = self.read(ids)
        vectors, is_token = pad(tokens, lengths, width=ids.shape[1])
        mask = is_token[:, 2:]
        embeddings = layers.new_zeros(len(ids), len(layers), mask.shape[1], layers.shape[2])
        embeddings.transpose(0, 1)[:, mask] = layers
        embeddings[:, 0][~mask] = self.padding.repeat(2)
        return {
            "lm_embeddings": embeddings.numpy(),
            "lengths": (lengths - 2).int().numpy(),
            "token_embeddings": vectors.where(is_token[..., None], self.padding).numpy(),
            "mask": mask.numpy(),
        }

    def read(self, ids: Array) -> tuple[Tensor, Tensor, Tensor]:
        """Return flat context-free vectors, flat layers (L, N, D) without markers, and lengths."""
        if len(ids) > self._max_batch_size:
            raise ValueError(
                f"a batch of {len(ids)} sentences is larger than max_batch_size = "
                f"{self._max_batch_size}"
            )
        tokens, lengths = self._encode(torch.as_tensor(ids))
        if not lengths.all():
            raise ValueError("a sentence has no markers; make batches with Batcher or TokenBatcher")
        return tokens, drop_ends(self._elmo.contextualize(tokens, lengths), lengths), lengths

    def reset_state(self) -> None:
        """Start over, as a new TensorFlow session does."""
        self._elmo.reset_state()

    def encode(self, ids: Array) -> Tensor:
        """Return the context-free vectors of (B, T, C) ids, one after another, without markers."""
        return self._encode(torch.as_tensor(ids))[0]

    def _encode(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return flat vectors of the ids, which include markers, and lengths."""
        if self._embedding is not None:
            return self._embedding[ids[ids > 0]], (ids > 0).sum(dim=1)
        vectors, lengths = self._elmo.encode(ids)  # with another pair of markers around each
        return drop_ends(vectors, lengths), lengths - 2


def weight_layers(
    name: str,  # noqa: ARG001  of variables in TensorFlow
    bilm_ops: dict[str, Any],
    l2_coef: float | None = None,  # noqa: ARG001  of weights that are all 0
    use_top_only: bool = False,
    do_layer_norm: bool = False,
) -> dict[str, Any]:
    """Return the `weighted_op`, here a (B, T, D) array: the mean of all layers, or the top layer.

    This is what bilm-tf returns before training. To learn the weights, use `elmore.Elmo`.
    """
    layers, mask = bilm_ops["lm_embeddings"], bilm_ops["mask"]
    weigh = partial(_weigh, use_top_only=use_top_only, do_layer_norm=do_layer_norm)
    is_deferred = isinstance(layers, Deferred)
    return {
        "weighted_op": Deferred(weigh, layers, mask) if is_deferred else weigh(layers, mask),
        "regularization_op": 0.0 if use_top_only else [0.0],
    }


def _weigh(layers: Array, mask: Array, *, use_top_only: bool, do_layer_norm: bool) -> Array:
    if use_top_only:
        return layers[:, -1]
    if do_layer_norm:
        real = layers.swapaxes(1, 2)[mask]  # (N, L, D)
        mean, variance = real.mean(axis=(0, 2)), real.var(axis=(0, 2))
        layers = (layers - mean[:, None, None]) / np.sqrt(variance + 1e-12)[:, None, None]
    return layers.mean(axis=1)


def dump_token_embeddings(
    vocab_file: str | Path, options_file: str | Path, weight_file: str | Path, outfile: str | Path
) -> None:
    """Write the context-free vectors of all words in a vocabulary, for `embedding_weight_file`."""
    model = BidirectionalLanguageModel(options_file, weight_file)
    batcher = Batcher(vocab_file, _read_max_chars(options_file))
    words = _read_words(vocab_file)
    parts = [
        model.encode(batcher.batch_sentences([words[start : start + 4096]])[:, 1:-1])
        for start in range(0, len(words), 4096)
    ]
    with h5py.File(outfile, "w") as file:
        file.create_dataset("embedding", data=torch.cat(parts).numpy(), dtype="float32")


def dump_bilm_embeddings(
    vocab_file: str | Path,
    dataset_file: str | Path,
    options_file: str | Path,
    weight_file: str | Path,
    outfile: str | Path,
) -> None:
    """Write all layers of one sentence per line, with the line numbers as keys."""
    model = BidirectionalLanguageModel(options_file, weight_file)
    batcher = Batcher(vocab_file, _read_max_chars(options_file))
    with Path(dataset_file).open(encoding="utf-8") as lines, h5py.File(outfile, "w") as file:
        for number, line in enumerate(lines):
            ids = batcher.batch_sentences([line.split()])
            file.create_dataset(str(number), data=model(ids)["lm_embeddings"][0], dtype="float32")


def _read_ids(ids: Any) -> Array:
    try:
        return np.asarray(ids)
    except NotImplementedError as error:  # TensorFlow's, for a tensor without values
        raise ElmoreError(
            "elmore's bilm reads arrays, not placeholders of the TensorFlow that is installed; "
            "call the model with the batch, or run the program where TensorFlow is not installed"
        ) from error


def _read_max_chars(options_file: str | Path) -> int:
    options = json.loads(Path(options_file).read_text(encoding="utf-8"))
    return options["char_cnn"]["max_characters_per_token"]


def _read_words(vocabulary: str | Path | None) -> list[str]:
    if vocabulary is None:
        return ["<S>", "</S>", "<UNK>"]
    lines = Path(vocabulary).read_text(encoding="utf-8").splitlines()
    return [word for line in lines if (word := line.strip()) != "!!!MAXTERMID"]


def _find(words: list[str], word: str) -> int:
    return words.index(word) if word in words else -1

"""`ElmoEmbedder` and the `allennlp elmo` command: sentences in, arrays or an HDF5 file out.

Shapes: B sentences, T tokens in the longest, L layers, D both directions of one layer.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore import replace_file
from elmore.compat.allennlp.common.checks import ConfigurationError
from elmore.compat.allennlp.modules.elmo import _ElmoBiLm, batch_to_ids
from elmore.compat.allennlp.nn.util import remove_sentence_boundaries
from elmore.compat.command_arguments import read_size

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "DEFAULT_OPTIONS_FILE",
    "DEFAULT_WEIGHT_FILE",
    "ElmoEmbedder",
    "elmo_command",
    "empty_embedding",
]

_ORIGINAL = (
    "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/"
    "elmo_2x4096_512_2048cnn_2xhighway_"
)
DEFAULT_OPTIONS_FILE = _ORIGINAL + "options.json"
DEFAULT_WEIGHT_FILE = _ORIGINAL + "weights.hdf5"
DEFAULT_BATCH_SIZE = 64

Array = NDArray[Any]


def empty_embedding() -> Array:
    """Return what `ElmoEmbedder` gives for a sentence without tokens, whatever the model."""
    return np.zeros((3, 0, 1024))


class ElmoEmbedder:
    """All layers of tokenized sentences; the state of a batch is carried to the next."""

    def __init__(
        self,
        options_file: str = DEFAULT_OPTIONS_FILE,
        weight_file: str = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
        *,
        policy: str = "stream",
    ) -> None:
        self.elmo_bilm = _ElmoBiLm(options_file, weight_file, policy=policy)
        if cuda_device >= 0:
            self.elmo_bilm = self.elmo_bilm.cuda(device=cuda_device)
        self.cuda_device = cuda_device

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Return padded (B, L, T, D) layers, and the int64 mask (B, T)."""
        output = self.elmo_bilm(batch_to_ids(batch))
        layers = [
            remove_sentence_boundaries(layer, output["mask"]) for layer in output["activations"]
        ]
        return torch.stack([layer for layer, _ in layers], dim=1), layers[0][1]

    def embed_sentence(self, sentence: Sequence[str]) -> Array:
        """Return (L, tokens, D)."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[Array]:
        """Return one (L, tokens, D) array per sentence."""
        if len(batch) == 1 and len(batch[0]) == 0:  # in AllenNLP, this does not touch the state
            return [empty_embedding()]
        layers, lengths, _ = self.elmo_bilm.read(batch_to_ids(batch))
        arrays = layers.detach().cpu().numpy()
        ends = accumulate(lengths.tolist(), initial=0)
        return [
            arrays[:, start + 1 : end - 1] if end - start > 2 else empty_embedding()
            for start, end in pairwise(ends)
        ]

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = DEFAULT_BATCH_SIZE
    ) -> Iterator[Array]:
        """Yield one (L, tokens, D) array per sentence."""
        waiting = iter(sentences)
        while batch := list(islice(waiting, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str,
        output_format: str = "all",
        batch_size: int = DEFAULT_BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Embed one sentence per line, tokens separated by spaces, into an HDF5 file.

        The keys are the line numbers, and `sentence_to_index` maps sentences to them.
        """
        assert output_format in ("all", "top", "average")
        with input_file:  # AllenNLP closes it too
            sentences = [line.strip() for line in input_file]
        blank = [number for number, line in enumerate(sentences) if not line]
        if blank:
            raise ConfigurationError(f"the input has empty lines at indexes {blank}; remove them")
        keys = sentences if use_sentence_keys else list(map(str, range(len(sentences))))
        embedded = self.embed_sentences([line.split() for line in sentences], batch_size)
        with (
            replace_file(Path(output_file_path)) as path,
            h5py.File(path, "w", locking=False) as file,  # `replace_file` holds a lock
        ):
            for key, layers in zip(keys, embedded, strict=True):
                if key in file:
                    raise ConfigurationError(
                        f"{output_file_path} already has the key {key!r}; duplicate sentences need "
                        "line numbers as keys, without --use-sentence-keys"
                    )
                file.create_dataset(key, data=_choose(layers, output_format), dtype="float32")
            if not forget_sentences and not use_sentence_keys:
                index = json.dumps(dict(zip(sentences, keys, strict=True)))
                file.create_dataset("sentence_to_index", data=[index], dtype=h5py.string_dtype())


def _choose(layers: Array, output_format: str) -> Array:
    if output_format == "all":
        return layers
    return layers[-1] if output_format == "top" else np.average(layers, axis=0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `allennlp elmo`."""
    parser.add_argument("input_file", help="one sentence per line, tokens separated by spaces")
    parser.add_argument("output_file", help="the HDF5 file to write")
    layers = parser.add_mutually_exclusive_group(required=True)
    layers.add_argument("--all", dest="output_format", action="store_const", const="all")
    layers.add_argument("--top", dest="output_format", action="store_const", const="top")
    layers.add_argument("--average", dest="output_format", action="store_const", const="average")
    parser.add_argument("--vocab-path", help="ignored, as in AllenNLP")
    parser.add_argument("--options-file", default=DEFAULT_OPTIONS_FILE)
    parser.add_argument("--weight-file", default=DEFAULT_WEIGHT_FILE)
    parser.add_argument("--batch-size", type=read_size, default=DEFAULT_BATCH_SIZE)
    parser.add_argument("--file-friendly-logging", action="store_true", help="ignored")
    parser.add_argument("--cuda-device", type=int, default=-1)
    parser.add_argument("--forget-sentences", action="store_true")
    parser.add_argument("--use-sentence-keys", action="store_true")
    parser.add_argument("--include-package", action="append", default=[], help="ignored")
    parser.set_defaults(func=elmo_command)


def elmo_command(args: argparse.Namespace) -> None:
    """Run `allennlp elmo`."""
    num_gpus = torch.cuda.device_count()
    if args.cuda_device >= num_gpus:
        raise ConfigurationError(
            f"--cuda-device is {args.cuda_device}, but the number of GPUs that torch finds is "
            f"{num_gpus}; leave it out to use the CPU"
        )
    text = sys.stdin if args.input_file == "-" else Path(args.input_file).open(encoding="utf-8")  # noqa: SIM115
    embedder = ElmoEmbedder(args.options_file, args.weight_file, args.cuda_device)
    try:
        embedder.embed_file(
            text,
            args.output_file,
            args.output_format,
            args.batch_size,
            args.forget_sentences,
            args.use_sentence_keys,
        )
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"the input {args.input_file} is not UTF-8 ({error.reason}); convert it"
        ) from error

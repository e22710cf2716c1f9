"""The layers of a frozen biLM, computed once and kept on disk, in a folder of bounded size.

Each set of sentences has one file (see `layer_file.py`), written by one process and read by many.

Shapes: L layers, B sentences, T tokens in the longest, D both directions of a layer.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmore.config import VECTORS, Precision, read_precision
from elmore.embed.cache_space import CacheSpace
from elmore.embed.embedder import Embedder
from elmore.embed.layer_choice import ALL
from elmore.embed.layer_file import (
    FORMAT,
    INDEX_BYTES,
    MAX_ABOUT_BYTES,
    FileWriter,
    LayerFile,
    count_token_bytes,
    digest_sentence,
    map_file,
)
from elmore.embed.layer_source import LiveLayers, pad_layers
from elmore.errors import DataError, ModelError
from elmore.files.atomic import explaining_write_errors, hold_lock
from elmore.files.example_store import ExampleStore

WAIT_SECONDS = 0.5

LoadLive = Callable[[], LiveLayers]
Say = Callable[[str], None]


class LayerCache:
    """A folder of layer files, by default in the user's cache folder.

    The files together take at most `max_bytes`, by default 20 GB or a third of the free disk space,
    whichever is less. To make room, files that no process has open are removed, least recently used
    first.
    """

    def __init__(self, folder: Path | None = None, *, max_bytes: int | None = None) -> None:
        self._space = CacheSpace(folder, max_bytes=max_bytes)
        self.folder = self._space.folder

    def open(
        self,
        load: Callable[[], Embedder],
        sentences: Iterable[Sequence[str]],
        *,
        fingerprint: str,
        weights: Precision = Precision.F32,
        precision: Precision | str = Precision.F16,
        device: str | torch.device = "cpu",
        on_progress: Say = lambda _text: None,
    ) -> "CachedLayers":
        """Return the layers of these sentences, computing them unless they are on disk.

        `fingerprint` and `weights` are the model's fingerprint and the precision of its weights.
        `load` is called if layers must be computed. Each type of `device` has its own files,
        because devices differ in the last bits. Sentences are read once; each distinct one takes 16
        bytes of memory, and its text is kept in a temporary file.
        """
        precision = read_precision("precision", precision, VECTORS)
        digests: set[bytes] = set()
        distinct = ExampleStore(_yield_distinct(sentences, digests), count_tokens=len)
        device_type = torch.device(device).type
        settings: list[str | int] = [FORMAT, fingerprint, weights, precision]
        if device_type != "cpu":
            settings.append(device_type)
        key = _find_key(settings, digests)
        live = cache(partial(_load_live, load, fingerprint, weights, precision))
        path = self.folder / f"{key}.layers"
        return CachedLayers(self._find(path, distinct, live, on_progress), live)

    def _find(
        self, path: Path, distinct: ExampleStore[Sequence[str]], live: LoadLive, say: Say
    ) -> LayerFile | None:
        """Map the file once this or another process has written it; None if there is no space."""
        while True:
            stored = map_file(path)
            if self._is_enough(stored, path):
                break
            with explaining_write_errors(path):
                self.folder.mkdir(parents=True, exist_ok=True)
                lock = path.with_suffix(".lock")
                try:
                    release = hold_lock(lock)
                except DataError:
                    say("waiting for another process that is embedding the same sentences")
                    time.sleep(WAIT_SECONDS)
                    continue
            try:
                # Another process may have written it in the meantime.
                if not self._is_enough(map_file(path), path):
                    self._write(path, distinct, live, say)
                    stored = map_file(path)
                    break
            finally:
                lock.unlink(missing_ok=True)
                release()
        with suppress(OSError):  # a read-only folder, or nothing was written
            os.utime(path)  # marks it as recently used
        return stored

    def _is_enough(self, stored: LayerFile | None, path: Path) -> bool:
        """Return whether a file can be used as is; an incomplete one only if space is short."""
        if stored is None or stored.is_whole:
            return stored is not None
        return not self._space.has_room(stored.whole_bytes, path)

    def _write(
        self, path: Path, distinct: ExampleStore[Sequence[str]], live: LoadLive, say: Say
    ) -> None:
        """Write as many sentences as fit; the file appears when it is complete."""
        source = live()  # first, because the model may fail to load
        token_bytes = count_token_bytes(source)
        num_tokens = int(distinct.lengths.sum(dtype=np.int64))
        whole_bytes = num_tokens * token_bytes + len(distinct) * INDEX_BYTES + MAX_ABOUT_BYTES
        with explaining_write_errors(path):
            self._space.sweep(path)
            budget = self._space.make_room(whole_bytes, path) - MAX_ABOUT_BYTES
            fitting = _yield_fitting(distinct, token_bytes=token_bytes, budget=budget)
            part = path.with_suffix(f".{os.getpid()}.part")
            try:
                with part.open("wb") as file:
                    # Reserve the space: other processes look at file sizes.
                    file.truncate(max(0, budget + MAX_ABOUT_BYTES))
                    writer = FileWriter(file, source)
                    for window in source.embedder.windows(fitting, layers=ALL):
                        for tokens, layers in zip(window.sentences, window.vectors, strict=True):
                            writer.add(tokens, layers)
                        say(f"embedding, {writer.num_tokens:,} of {num_tokens:,} tokens")
                    writer.finish(num_wanted=len(distinct), whole_bytes=whole_bytes)
                if writer.num_sentences:
                    part.replace(path)
            finally:
                part.unlink(missing_ok=True)


class CachedLayers:
    """Reads layers from a file, and computes those of sentences that are not in it."""

    def __init__(self, stored: LayerFile | None, live: LoadLive) -> None:
        self.stored = stored
        self._live = live

    @property
    def num_layers(self) -> int:
        """The number of LSTM layers plus one for the token layer."""
        return self._live().num_layers if self.stored is None else self.stored.num_layers

    @property
    def layer_dim(self) -> int:
        """Width of a layer: both directions."""
        return self._live().layer_dim if self.stored is None else self.stored.layer_dim

    def find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return (L, B, T, D) float32, zero at padding."""
        stored = self.stored
        arrays = [None if stored is None else stored.read(sentence) for sentence in sentences]
        missing = [index for index, array in enumerate(arrays) if array is None]
        if missing:
            computed = self._live().compute([sentences[index] for index in missing])
            for index, layers in zip(missing, computed, strict=True):
                arrays[index] = layers
        return pad_layers([array for array in arrays if array is not None])


def _find_key(settings: Sequence[str | int], digests: set[bytes]) -> str:
    """Return the key of a set of sentences with these settings; order does not matter."""
    hashed = hashlib.sha256(json.dumps(settings).encode())
    for digest in sorted(digests):
        hashed.update(digest)
    return hashed.hexdigest()[:40]


def _yield_distinct(
    sentences: Iterable[Sequence[str]], digests: set[bytes]
) -> Iterator[Sequence[str]]:
    for sentence in sentences:
        digest = digest_sentence(sentence)
        if digest not in digests:
            digests.add(digest)
            yield sentence


def _yield_fitting(
    sentences: Iterable[Sequence[str]], *, token_bytes: int, budget: int
) -> Iterator[Sequence[str]]:
    """Yield the sentences that fit into the budget."""
    for sentence in sentences:
        num_bytes = len(sentence) * token_bytes + INDEX_BYTES
        if num_bytes <= budget:
            budget -= num_bytes
            yield sentence


def _load_live(
    load: Callable[[], Embedder], fingerprint: str, weights: Precision, precision: Precision
) -> LiveLayers:
    embedder = load()
    if (embedder.model.fingerprint(), embedder.precision) != (fingerprint, weights):
        raise ModelError(
            f"the loaded biLM is {embedder.model.fingerprint()[:12]} in {embedder.precision}, but "
            f"layers of {fingerprint[:12]} in {weights} are needed; give the model that the task "
            "was trained with"
        )
    return LiveLayers(embedder, precision)

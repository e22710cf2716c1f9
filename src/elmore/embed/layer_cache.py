"""The layers of a frozen biLM, computed once and kept on disk, in a folder of bounded size.

Each set of sentences has one file (see `layer_file.py`), written by one process and read by many.

Shapes: L layers, B sentences, T tokens in the longest, D both directions of a layer.
"""

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmore.config import VECTORS, Precision, read_precision
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
from elmore.settings import check_range

MAX_BYTES = 20_000_000_000
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
        if max_bytes is not None:
            check_range("max_bytes", max_bytes, 0, 1 << 60)
        self.folder = default_folder() if folder is None else Path(folder)
        self.max_bytes = max_bytes

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
        others = [entry for entry in self._list_files() if entry[2] != path]
        used = sum(size for _, size, other in others if _is_used(other))
        return used + stored.whole_bytes > self._find_limit()

    def _write(
        self, path: Path, distinct: ExampleStore[Sequence[str]], live: LoadLive, say: Say
    ) -> None:
        """Write as many sentences as fit; the file appears when it is complete."""
        source = live()  # first, because the model may fail to load
        token_bytes = count_token_bytes(source)
        num_tokens = int(distinct.lengths.sum(dtype=np.int64))
        whole_bytes = num_tokens * token_bytes + len(distinct) * INDEX_BYTES + MAX_ABOUT_BYTES
        with explaining_write_errors(path):
            self._sweep(path)
            budget = self._make_room(whole_bytes, path) - MAX_ABOUT_BYTES
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

    def _sweep(self, path: Path) -> None:
        """Remove what killed processes left; a running one holds the lock of its file."""
        for part in self.folder.glob("*.part"):
            lock = part.with_name(f"{part.name.partition('.')[0]}.lock")
            if lock == path.with_suffix(".lock"):  # our own lock
                part.unlink(missing_ok=True)
                continue
            with suppress(DataError):
                release = hold_lock(lock)
                part.unlink(missing_ok=True)
                lock.unlink(missing_ok=True)
                release()

    def _make_room(self, wanted_bytes: int, path: Path) -> int:
        """Remove files to make room for `wanted_bytes`; return how many of them are available."""
        files = [entry for entry in self._list_files() if entry[2] != path]
        limit = self._find_limit()
        used = sum(size for _, size, _ in files)
        for _, size, other in sorted(files):
            if used + wanted_bytes <= limit:
                break
            if other.suffix == ".layers" and _remove_unused(other):
                used -= size
        return min(wanted_bytes, limit - used)

    def _find_limit(self) -> int:
        if self.max_bytes is not None:
            return self.max_bytes
        # The files in the cache count as free space; otherwise a full cache would shrink.
        used = sum(_count_disk_bytes(path) for _, _, path in self._list_files())
        return min(MAX_BYTES, (shutil.disk_usage(self.folder).free + used) // 3)

    def _list_files(self) -> list[tuple[float, int, Path]]:
        """Return the time of last use, the size and the path of each file."""
        files = []
        for path in [*self.folder.glob("*.layers"), *self.folder.glob("*.part")]:
            with suppress(FileNotFoundError):  # another process may have removed it
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        return files


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


def default_folder() -> Path:
    """Return the folder `layers` in $ELMORE_CACHE or in the system's cache folder for elmore."""
    if folder := os.environ.get("ELMORE_CACHE"):
        return Path(folder).expanduser() / "layers"
    if folder := os.environ.get("XDG_CACHE_HOME"):
        caches = Path(folder)
    elif sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        caches = Path.home() / ".cache"
    return caches / "elmore" / "layers"


def _count_disk_bytes(path: Path) -> int:
    """Return the disk space of a file: less than its size while it is only reserved."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0
    return min(status.st_size, 512 * getattr(status, "st_blocks", status.st_size))


def _is_used(path: Path) -> bool:
    """Return whether a process has a file open or is writing it."""
    if path.suffix != ".layers":
        return True
    try:
        release = hold_lock(path)
        if not path.stat().st_size:  # it had been removed, and locking created it again
            path.unlink()
        release()
    except (DataError, OSError):  # for example on a read-only disk
        return True
    return False


def _remove_unused(path: Path) -> bool:
    """Remove a file unless a process has it open; return whether it was removed."""
    try:
        release = hold_lock(path)
    except (DataError, PermissionError):
        return False
    try:
        path.unlink(missing_ok=True)
    except PermissionError:  # open on Windows
        return False
    finally:
        release()
    return True


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

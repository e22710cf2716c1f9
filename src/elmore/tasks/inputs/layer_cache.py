"""The layers of a frozen biLM, computed once and kept on disk, in a folder of bounded size.

A set of sentences is one file: each sentence's layers in turn, an index, and how to read them.

Shapes: L layers, T tokens of a sentence, D both directions of a layer, N sentences of a file.
"""

import errno
import hashlib
import json
import mmap
import os
import shutil
import struct
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from elmore.atomic_file import explaining_write_errors, hold_lock
from elmore.config import Precision, check_range, read_choice
from elmore.embed.chunks import digest_tokens
from elmore.embed.embedder import Embedder
from elmore.embed.layer_choice import ALL
from elmore.errors import DataError, ModelError
from elmore.tasks.data.example_store import ExampleStore
from elmore.tasks.inputs.layer_source import (
    LayerPrecision,
    LiveLayers,
    Rounded,
    pad_layers,
    round_layers,
)
from elmore.text.batches import refuse_string

FORMAT = 1
MAX_BYTES = 20_000_000_000
WAIT_SECONDS = 0.5

DIGEST_BYTES = 16
# Of a sentence in the index: its digest, where its layers begin, how many tokens it has.
INDEX_COLUMNS = (("high", "<u8"), ("low", "<u8"), ("start", "<i8"), ("num_tokens", "<i4"))
INDEX_BYTES = sum(np.dtype(kind).itemsize for _, kind in INDEX_COLUMNS)
# The end of a file: the length of the JSON before it, and a mark.
TAIL = struct.Struct("<q8s")
MARK = b"elmolyrs"
MAX_ABOUT_BYTES = 1024  # the JSON, the tail, and what puts the index at a multiple of 8

LoadLive = Callable[[], LiveLayers]
Say = Callable[[str], None]


class LayerCache:
    """A folder of layers, by default elmore's in the user's cache.

    All files together keep to `max_bytes`, by default 20 GB or a third of what the disk has left,
    whichever is less: those that nobody has open are removed, the least recently used first.
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
        precision: LayerPrecision | str = LayerPrecision.F16,
        on_progress: Say = lambda _text: None,
    ) -> "CachedLayers":
        """Return the layers of these sentences, computed now unless they are on disk.

        `fingerprint` and `weights` are the model's and the embedder's `precision`; `load` is
        called if something must be computed. Sentences are read once; of each distinct one 16
        bytes are kept in memory, and the text in a temporary file.
        """
        precision = LayerPrecision(read_choice("precision", precision, LayerPrecision))
        digests: set[bytes] = set()
        distinct = ExampleStore(_pass_distinct(sentences, digests), count_tokens=len)
        key = _find_key([FORMAT, fingerprint, weights, precision], digests)
        live = cache(partial(_load_live, load, fingerprint, weights, precision))
        path = self.folder / f"{key}.layers"
        return CachedLayers(self._find(path, distinct, live, on_progress), live)

    def _find(
        self, path: Path, distinct: ExampleStore[Sequence[str]], live: LoadLive, say: Say
    ) -> "LayerFile | None":
        """Map the file, after writing it or waiting for who does; None if there is no room."""
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
                    say("waiting for another process, which embeds the same sentences")
                    time.sleep(WAIT_SECONDS)
                    continue
            try:
                # Another process may have written it since it was looked for.
                if not self._is_enough(map_file(path), path):
                    self._write(path, distinct, live, say)
                    stored = map_file(path)
                    break
            finally:
                lock.unlink(missing_ok=True)
                release()
        with suppress(OSError):  # where all may read and some may write, or nothing was written
            os.utime(path)  # for who looks for the least recently used
        return stored

    def _is_enough(self, stored: "LayerFile | None", path: Path) -> bool:
        """Whether a file needs no writing: one that lacks sentences does, once there is room."""
        if stored is None or stored.is_whole:
            return stored is not None
        used = sum(size for _, size, other in self._list_files() if other != path)
        return used + stored.whole_bytes > self._find_limit()

    def _write(
        self, path: Path, distinct: ExampleStore[Sequence[str]], live: LoadLive, say: Say
    ) -> None:
        """Write as many sentences as there is room for; the file appears when it is finished."""
        source = live()  # before the folder is touched: a model may fail to load
        token_bytes = count_token_bytes(source)
        num_tokens = int(distinct.lengths.sum(dtype=np.int64))
        whole_bytes = num_tokens * token_bytes + len(distinct) * INDEX_BYTES + MAX_ABOUT_BYTES
        with explaining_write_errors(path):
            self._sweep(path)
            budget = self._make_room(whole_bytes, path) - MAX_ABOUT_BYTES
            fitting = _pass_fitting(distinct, token_bytes=token_bytes, budget=budget)
            part = path.with_suffix(f".{os.getpid()}.part")
            try:
                with part.open("wb") as file:
                    writer = FileWriter(file, source)
                    for window in source.embedder.windows(fitting, mix=ALL):
                        for tokens, layers in zip(window.sentences, window.vectors, strict=True):
                            writer.add(tokens, layers)
                        say(f"embedding, {writer.num_tokens:,} of {num_tokens:,} tokens")
                    writer.finish(num_wanted=len(distinct), whole_bytes=whole_bytes)
                if writer.num_sentences:
                    part.replace(path)
            finally:
                part.unlink(missing_ok=True)

    def _sweep(self, path: Path) -> None:
        """Remove what killed processes left; a live one holds the lock of what it writes."""
        for part in self.folder.glob("*.part"):
            lock = part.with_name(f"{part.name.partition('.')[0]}.lock")
            if lock == path.with_suffix(".lock"):  # which is ours
                part.unlink(missing_ok=True)
                continue
            with suppress(DataError):
                release = hold_lock(lock)
                part.unlink(missing_ok=True)
                lock.unlink(missing_ok=True)
                release()

    def _make_room(self, wanted_bytes: int, path: Path) -> int:
        """Remove files until so many bytes are free, or none can go; return how many are."""
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
        # Its own files count as free space, or the cache would shrink by what it holds.
        used = sum(size for _, size, _ in self._list_files())
        return min(MAX_BYTES, (shutil.disk_usage(self.folder).free + used) // 3)

    def _list_files(self) -> list[tuple[float, int, Path]]:
        """Return when each file was last used, its bytes and its path."""
        files = []
        for path in [*self.folder.glob("*.layers"), *self.folder.glob("*.part")]:
            with suppress(FileNotFoundError):  # another process may remove it just now
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        return files


class CachedLayers:
    """Layers from a file; those of sentences that it does not have are computed."""

    def __init__(self, stored: "LayerFile | None", live: LoadLive) -> None:
        self.stored = stored
        self._live = live

    @property
    def num_layers(self) -> int:
        """The LSTM layers, and the tokens below them."""
        return self._live().num_layers if self.stored is None else self.stored.num_layers

    @property
    def layer_dim(self) -> int:
        """Width of a layer: both directions."""
        return self._live().layer_dim if self.stored is None else self.stored.layer_dim

    def find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return (L, B, T, D) float32, zero behind the end of a sentence."""
        stored = self.stored
        arrays = [None if stored is None else stored.read(sentence) for sentence in sentences]
        missing = [place for place, array in enumerate(arrays) if array is None]
        if missing:
            computed = self._live().compute([sentences[place] for place in missing])
            for place, layers in zip(missing, computed, strict=True):
                arrays[place] = layers
        return pad_layers([array for array in arrays if array is not None])


class LayerFile:
    """A finished file, mapped into memory: what is not read takes none."""

    def __init__(self, mapping: mmap.mmap) -> None:
        """Raise ValueError or KeyError for what is no whole file."""
        self._mapping = mapping
        about_bytes, mark = TAIL.unpack(mapping[-TAIL.size :])
        about: dict[str, Any] = json.loads(mapping[-TAIL.size - about_bytes : -TAIL.size])
        num_bytes = about["start"] + about_bytes + TAIL.size
        if mark != MARK or about["format"] != FORMAT or num_bytes != len(mapping):
            raise ValueError("not a whole file of this format")
        self.num_layers: int = about["num_layers"]
        self.layer_dim: int = about["layer_dim"]
        self.num_sentences: int = about["num_sentences"]
        self.whole_bytes: int = about["whole_bytes"]
        """How large it would be with all sentences."""
        self.is_whole: bool = about["is_whole"]
        self._dtype = LayerPrecision(about["precision"]).dtype
        self._index: dict[str, NDArray[Any]] = {}
        offset = about["index_start"]
        for name, kind in INDEX_COLUMNS:
            column = np.frombuffer(mapping, kind, count=self.num_sentences, offset=offset)
            self._index[name] = column
            offset += column.nbytes

    def read(self, tokens: Sequence[str]) -> Rounded | None:
        """Return (L, T, D), or None for a sentence that it does not have."""
        high, low = np.frombuffer(digest_sentence(tokens), "<u8")
        row = int(np.searchsorted(self._index["high"], high))
        while row < self.num_sentences and self._index["high"][row] == high:
            if self._index["low"][row] == low:
                return self._read_row(row)
            row += 1
        return None

    def _read_row(self, row: int) -> Rounded:
        num_tokens, half = int(self._index["num_tokens"][row]), self.layer_dim // 2
        values = np.frombuffer(
            self._mapping,
            self._dtype,
            count=num_tokens * (half + (self.num_layers - 1) * self.layer_dim),
            offset=int(self._index["start"][row]),
        )
        layers = np.empty((self.num_layers, num_tokens, self.layer_dim), self._dtype)
        tokens, above = values[: num_tokens * half], values[num_tokens * half :]
        layers[0] = np.tile(tokens.reshape(num_tokens, half), 2)
        layers[1:] = above.reshape(self.num_layers - 1, num_tokens, self.layer_dim)
        return layers


class FileWriter:
    """Writes sentence after sentence, and the index at the end."""

    def __init__(self, file: BinaryIO, source: LiveLayers) -> None:
        self.num_tokens = 0
        self._file = file
        self._source = source
        self._digests = bytearray()
        self._starts, self._lengths = array("q"), array("i")

    @property
    def num_sentences(self) -> int:
        """Those written so far."""
        return len(self._starts)

    def add(self, tokens: Sequence[str], layers: NDArray[np.float32]) -> None:
        """Write the (L, T, D) layers of a sentence that is not there yet."""
        rounded = round_layers(layers, self._source.precision)
        half = rounded.shape[2] // 2
        assert np.array_equal(rounded[0, :, :half], rounded[0, :, half:]), "layer 0 is [x; x]"
        self._digests += digest_sentence(tokens)
        self._starts.append(self._file.tell())
        self._lengths.append(len(tokens))
        self._file.write(rounded[0, :, :half].tobytes())
        self._file.write(rounded[1:].tobytes())
        self.num_tokens += len(tokens)

    def finish(self, *, num_wanted: int, whole_bytes: int) -> None:
        """Write the index, in the order of digests, and what is needed to read the file."""
        self._file.write(bytes(-self._file.tell() % 8))
        index_start = self._file.tell()
        high, low = np.frombuffer(self._digests, "<u8").reshape(-1, 2).T
        order = np.lexsort((low, high))
        columns = (high, low, np.array(self._starts), np.array(self._lengths))
        for column, (_, kind) in zip(columns, INDEX_COLUMNS, strict=True):
            self._file.write(column[order].astype(kind).tobytes())
        about = {
            "format": FORMAT,
            "num_layers": self._source.num_layers,
            "layer_dim": self._source.layer_dim,
            "precision": self._source.precision,
            "num_sentences": self.num_sentences,
            "is_whole": self.num_sentences == num_wanted,
            "whole_bytes": whole_bytes,
            "index_start": index_start,
            "start": self._file.tell(),
        }
        encoded = json.dumps(about).encode()
        self._file.write(encoded + TAIL.pack(len(encoded), MARK))
        self._file.flush()
        os.fsync(self._file.fileno())  # before it gets its name: after a power cut, whole or absent


def default_folder() -> Path:
    """Return `layers` in $ELMORE_CACHE, or in elmore's folder where the system keeps caches."""
    if place := os.environ.get("ELMORE_CACHE"):
        return Path(place).expanduser() / "layers"
    if place := os.environ.get("XDG_CACHE_HOME"):
        caches = Path(place)
    elif sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        caches = Path.home() / ".cache"
    return caches / "elmore" / "layers"


def map_file(path: Path) -> LayerFile | None:
    """Map a file, and keep it from being removed; None if there is none, or a damaged one."""
    try:
        with path.open("rb") as file:
            if not _share(file, path):
                return None
            # The mapping has a copy of the descriptor, and with it the lock while it lives.
            return LayerFile(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, struct.error):
        return None
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}; delete it, or name another folder in "
            "ELMORE_CACHE"
        ) from error


def _share(file: BinaryIO, path: Path) -> bool:
    """Lock a file for reading; False if somebody is removing it."""
    if sys.platform == "win32":
        return True  # where nobody can remove a file that is open
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
            raise
    return path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))


def _remove_unused(path: Path) -> bool:
    """Remove a file unless somebody has it open."""
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


def digest_sentence(tokens: Sequence[str]) -> bytes:
    """Return what stands for a sentence: two never share it."""
    refuse_string(tokens)
    return bytes.fromhex(digest_tokens("", tokens))[:DIGEST_BYTES]


def count_token_bytes(source: LiveLayers) -> int:
    """Return what a token takes on disk; of layer 0, which is [x; x], half is stored."""
    num_values = source.num_layers * source.layer_dim - source.layer_dim // 2
    return num_values * source.precision.dtype.itemsize


def _find_key(settings: Sequence[str | int], digests: set[bytes]) -> str:
    """Return the name of a set of sentences under these settings, whatever their order."""
    hashed = hashlib.sha256(json.dumps(settings).encode())
    for digest in sorted(digests):
        hashed.update(digest)
    return hashed.hexdigest()[:40]


def _pass_distinct(
    sentences: Iterable[Sequence[str]], digests: set[bytes]
) -> Iterator[Sequence[str]]:
    for sentence in sentences:
        digest = digest_sentence(sentence)
        if digest not in digests:
            digests.add(digest)
            yield sentence


def _pass_fitting(
    sentences: Iterable[Sequence[str]], *, token_bytes: int, budget: int
) -> Iterator[Sequence[str]]:
    """Leave out what would not fit any more."""
    for sentence in sentences:
        num_bytes = len(sentence) * token_bytes + INDEX_BYTES
        if num_bytes <= budget:
            budget -= num_bytes
            yield sentence


def _load_live(
    load: Callable[[], Embedder], fingerprint: str, weights: Precision, precision: LayerPrecision
) -> LiveLayers:
    embedder = load()
    if (embedder.model.fingerprint(), embedder.precision) != (fingerprint, weights):
        raise ModelError(
            f"the biLM loaded is {embedder.model.fingerprint()[:12]} in {embedder.precision}, and "
            f"layers of {fingerprint[:12]} in {weights} are wanted; give the model that the task "
            "was fitted with"
        )
    return LiveLayers(embedder, precision)

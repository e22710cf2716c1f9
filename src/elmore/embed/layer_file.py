"""A file of layers: the layers of each sentence, an index, and a description at the end.

It is written once, sentence by sentence, then memory-mapped and never changed.

Shapes: L layers, T tokens of a sentence, D both directions of a layer.
"""

import errno
import json
import mmap
import os
import struct
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmore.embed.chunks import digest_tokens
from elmore.embed.layer_source import LiveLayers, Rounded, find_dtype, round_layers
from elmore.errors import DataError
from elmore.text.batches import refuse_string

FORMAT = 1
DIGEST_BYTES = 16
# A sentence's entry in the index: its digest, the offset of its layers, its number of tokens.
INDEX_COLUMNS = (("high", "<u8"), ("low", "<u8"), ("start", "<i8"), ("num_tokens", "<i4"))
INDEX_BYTES = sum(np.dtype(kind).itemsize for _, kind in INDEX_COLUMNS)
# The end of a file: the length of the JSON before it, and a mark.
TAIL = struct.Struct("<q8s")
MARK = b"elmolyrs"
MAX_ABOUT_BYTES = 1024  # the JSON, the tail, and the padding that aligns the index to 8 bytes


class LayerFile:
    """A finished file, memory-mapped, so that only the parts in use take memory."""

    def __init__(self, mapping: mmap.mmap) -> None:
        """Raise ValueError or KeyError if the file is incomplete or has another format."""
        self._mapping = mapping
        about_bytes, mark = TAIL.unpack(mapping[-TAIL.size :])
        about: dict[str, Any] = json.loads(mapping[-TAIL.size - about_bytes : -TAIL.size])
        num_bytes = about["start"] + about_bytes + TAIL.size
        if mark != MARK or about["format"] != FORMAT or num_bytes != len(mapping):
            raise ValueError("not a complete file of this format")
        self.num_layers: int = about["num_layers"]
        self.layer_dim: int = about["layer_dim"]
        self.num_sentences: int = about["num_sentences"]
        self.whole_bytes: int = about["whole_bytes"]
        """The size of the file if it held all sentences."""
        self.is_whole: bool = about["is_whole"]
        self._dtype = find_dtype(about["precision"])
        self._index: dict[str, NDArray[Any]] = {}
        offset = about["index_start"]
        for name, kind in INDEX_COLUMNS:
            column = np.frombuffer(mapping, kind, count=self.num_sentences, offset=offset)
            self._index[name] = column
            offset += column.nbytes

    def read(self, tokens: Sequence[str]) -> Rounded | None:
        """Return (L, T, D), or None if the sentence is not in the file."""
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


def map_file(path: Path) -> LayerFile | None:
    """Memory-map a file and lock it against removal; None if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            if not _share(file, path):
                return None
            # The mapping has a copy of the descriptor, so it holds the lock as long as it exists.
            return LayerFile(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, struct.error):
        return None
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}; delete it, or set ELMORE_CACHE to another "
            "folder"
        ) from error


def _share(file: BinaryIO, path: Path) -> bool:
    """Lock a file for reading; False if another process is removing it."""
    if sys.platform == "win32":
        return True  # Windows does not remove open files
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
            raise
    return path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))


class FileWriter:
    """Writes one sentence at a time, and the index at the end."""

    def __init__(self, file: BinaryIO, source: LiveLayers) -> None:
        self.num_tokens = 0
        self._file = file
        self._source = source
        self._digests = bytearray()
        self._starts, self._lengths = array("q"), array("i")

    @property
    def num_sentences(self) -> int:
        """The number of sentences written so far."""
        return len(self._starts)

    def add(self, tokens: Sequence[str], layers: NDArray[np.float32]) -> None:
        """Write the (L, T, D) layers of a sentence that is not in the file yet."""
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
        """Write the index, sorted by digest, and the description of the file."""
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
        self._file.truncate()  # more disk space may have been reserved
        self._file.flush()
        os.fsync(self._file.fileno())  # before the rename, so a power cut leaves no partial file


def digest_sentence(tokens: Sequence[str]) -> bytes:
    """Return a key for a sentence; different sentences have different keys."""
    refuse_string(tokens)
    return bytes.fromhex(digest_tokens("", tokens))[:DIGEST_BYTES]


def count_token_bytes(source: LiveLayers) -> int:
    """Return the bytes per token on disk; only half of layer 0, which is [x; x], is stored."""
    num_values = source.num_layers * source.layer_dim - source.layer_dim // 2
    return num_values * find_dtype(source.precision).itemsize

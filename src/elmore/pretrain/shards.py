"""A shard: the tokens of one chunk of text, as numbers of its own, in a safetensors file.

It knows no vocabulary, so it can be made before there is one, and every token keeps its spelling.

Shapes: N symbols (tokens and markers), S sentences, T types (distinct tokens).
"""

import hashlib
import json
import mmap
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.atomic_file import replace_file
from elmore.errors import DataError

FORMAT = 1
# Symbols 0 and 1 mark where sentences begin and end; k + 2 is type k.
BEGIN, END, NUM_MARKERS = 0, 1, 2

ARRAYS = ("symbols", "sentence_starts", "breaks", "type_counts", "type_offsets", "type_bytes")
MAX_HEADER_BYTES = 1 << 16

_U32 = np.dtype("<u4")
_DTYPES: dict[str, np.dtype[Any]] = {"U32": _U32, "U8": np.dtype("u1")}
_LINE_FEED = 1  # ends every type


@dataclass(frozen=True, kw_only=True)
class ShardFacts:
    """What a corpus keeps about a shard."""

    num_bytes: int  # of the file
    sha256: str  # of the arrays, in the order of `ARRAYS`
    num_symbols: int
    num_sentences: int
    num_types: int
    num_bad: int  # bytes replaced by U+FFFD
    bad_places: list[list[int]]  # number of the source, line and byte of the first few
    is_heldout: bool
    source_bytes: int
    source_crc32: int
    inputs: list[list[int]] | None = None
    """Number of each input in the shard and its first sentence here; older shards lack it."""

    @property
    def num_tokens(self) -> int:
        """Symbols that are no markers."""
        return self.num_symbols - NUM_MARKERS * self.num_sentences


class Shard:
    """A shard's arrays, mapped into memory: only what is looked at is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            mapped = _map_file(path)
            header, start = _read_header(mapped)
            self.facts = _read_facts(header, num_bytes=len(mapped))
            arrays = {name: _map_array(mapped, header[name], start) for name in ARRAYS}
        except FileNotFoundError:
            raise DataError(f"{path} is missing; prepare the corpus again") from None
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} is damaged ({error}); prepare the corpus again, with --restart"
            ) from None
        self.symbols = arrays["symbols"]  # (N,)
        self.sentence_starts = arrays["sentence_starts"]  # (S + 1,) among the symbols
        self.breaks = arrays["breaks"]  # sentences before each end of a document
        self.type_counts = arrays["type_counts"]  # (T,)
        self.type_offsets = arrays["type_offsets"]  # (T + 1,) among the bytes
        self.type_bytes = arrays["type_bytes"]
        self._type_view = self.type_bytes.data

    def types(self) -> list[str]:
        """Return all types in order."""
        return self.type_bytes.tobytes().decode("utf-8").split("\n")[:-1]

    def spell(self, types: NDArray[Any]) -> list[str]:
        """Return some types by their numbers."""
        starts = self.type_offsets[types].tolist()
        ends = self.type_offsets[types + 1].tolist()
        view = self._type_view
        return [
            str(view[start : end - _LINE_FEED], "utf-8")
            for start, end in zip(starts, ends, strict=True)
        ]

    def type_lengths(self) -> NDArray[np.int64]:
        """Return (T,) characters of each type, and one for the separator after it."""
        if not len(self.type_counts):
            return np.zeros(0, np.int64)
        starts_character = (self.type_bytes & 0xC0) != 0x80
        return np.add.reduceat(starts_character, self.type_offsets[:-1], dtype=np.int64)

    def checksum(self) -> str:
        """Return what `facts.sha256` should be."""
        return _hash_arrays({name: getattr(self, name) for name in ARRAYS})


def write_shard(
    path: Path, sentences: Iterable[list[str]], *, facts: Callable[[], dict[str, Any]]
) -> ShardFacts:
    """Write sentences; an empty one ends a document. `facts` is called after the last is read."""
    from safetensors.numpy import save  # noqa: PLC0415  readers of a corpus need it not

    arrays = _number_tokens(sentences)
    all_facts = {
        "sha256": _hash_arrays(arrays),
        "num_symbols": len(arrays["symbols"]),
        "num_sentences": len(arrays["sentence_starts"]) - 1,
        "num_types": len(arrays["type_counts"]),
        **facts(),
    }
    # One entry, for safetensors would write several in no fixed order.
    about = json.dumps({"format": FORMAT, "facts": all_facts})
    data = save(arrays, metadata={"elmore": about})
    with replace_file(path) as temporary:
        temporary.write_bytes(data)
    return ShardFacts(num_bytes=len(data), **all_facts)


def _number_tokens(sentences: Iterable[list[str]]) -> dict[str, NDArray[Any]]:
    """Give distinct tokens a number as they come; note where sentences and documents end."""
    places: defaultdict[str, int] = defaultdict(count(NUM_MARKERS).__next__)
    find_place = places.__getitem__
    symbols = array("I")
    sentence_starts = array("I")
    breaks: list[int] = []
    for sentence in sentences:
        if not sentence:
            breaks.append(len(sentence_starts))
            continue
        sentence_starts.append(len(symbols))
        symbols.append(BEGIN)
        symbols.extend(map(find_place, sentence))
        symbols.append(END)
    sentence_starts.append(len(symbols))
    all_symbols = np.array(symbols, _U32)
    lines = [f"{token}\n".encode() for token in places]
    return {
        "symbols": all_symbols,
        "sentence_starts": np.array(sentence_starts, _U32),
        "breaks": np.unique(np.array(breaks, _U32)),
        "type_counts": np.bincount(all_symbols)[NUM_MARKERS:].astype(_U32),
        "type_offsets": np.cumsum([0, *map(len, lines)], dtype=_U32),
        "type_bytes": np.frombuffer(b"".join(lines), np.uint8),
    }


def _hash_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in ARRAYS:
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _map_file(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _read_header(mapped: mmap.mmap) -> tuple[dict[str, Any], int]:
    """Return the header of a safetensors file, and where its arrays start."""
    start = 8 + int.from_bytes(mapped[:8], "little")
    if start > min(len(mapped), MAX_HEADER_BYTES):
        raise ValueError("its header is longer than it can be")
    return json.loads(mapped[8:start]), start


def _read_facts(header: dict[str, Any], *, num_bytes: int) -> ShardFacts:
    about = json.loads(header["__metadata__"]["elmore"])
    if about["format"] != FORMAT:
        raise ValueError(f"it has format {about['format']}, and this elmore reads {FORMAT}")
    return ShardFacts(num_bytes=num_bytes, **about["facts"])


def _map_array(mapped: mmap.mmap, entry: dict[str, Any], start: int) -> NDArray[Any]:
    first, end = entry["data_offsets"]
    dtype = _DTYPES[entry["dtype"]]
    if not 0 <= first <= end <= len(mapped) - start:
        raise ValueError("it was cut short")
    return np.frombuffer(mapped, dtype, count=(end - first) // dtype.itemsize, offset=start + first)

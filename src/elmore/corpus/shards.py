"""A shard: the tokens of one chunk of text, numbered within the shard, in a safetensors file.

It does not depend on a vocabulary, so it can be made before there is one, and every token keeps
its spelling.

Shapes: N symbols (tokens and markers), S sentences, T types (distinct tokens).
"""

import hashlib
import json
import mmap
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.errors import DataError
from elmore.files.atomic import replace_file
from elmore.files.untrusted import is_count

FORMAT = 1
# Symbols 0 and 1 mark the start and end of sentences; k + 2 is type k.
BEGIN, END, NUM_MARKERS = 0, 1, 2

ARRAYS = ("symbols", "sentence_starts", "breaks", "type_counts", "type_offsets", "type_bytes")
# The header of a shard made from very many small files has a long list of them.
MAX_HEADER_BYTES = 1 << 26

_U32 = np.dtype("<u4")
_DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype("u1") if name == "type_bytes" else _U32 for name in ARRAYS
}
_DTYPE_NAMES = {_U32: "U32", np.dtype("u1"): "U8"}
_LINE_FEED = 1  # ends every type
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ShardFacts:
    """What corpus.json records about a shard."""

    num_bytes: int  # of the file
    sha256: str  # of the arrays, in the order of `ARRAYS`
    num_symbols: int
    num_sentences: int
    num_types: int
    num_bad: int  # bytes replaced by U+FFFD
    bad_places: list[list[int]]  # source number, line and byte of the first few
    is_heldout: bool
    source_bytes: int
    source_crc32: int
    inputs: list[list[int]] | None = None
    """Each input's number and its first sentence in the shard; missing in older shards."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "ShardFacts":
        """Read facts from JSON; raise `ValueError` if one is missing or invalid."""
        names = {field.name for field in fields(cls)}
        if set(values) not in (names, names - {"inputs"}):
            raise ValueError(f"a shard has the fields {sorted(values)}, expected {sorted(names)}")
        for name, value in values.items():
            if not _is_possible(name, value):
                raise ValueError(f"a shard has an invalid {name}: {value!r:.60}")
        facts = cls(**values)
        if facts.inputs is not None and not facts._has_possible_inputs(facts.inputs):
            raise ValueError(f"a shard has invalid inputs: {facts.inputs!r:.60}")
        return facts

    def _has_possible_inputs(self, inputs: list[list[int]]) -> bool:
        """Return whether the first sentences of inputs start at 0, increase and exist."""
        firsts = [first for _, first in inputs]
        return firsts == sorted(firsts) and firsts[:1] == [0] and firsts[-1] <= self.num_sentences

    @property
    def num_tokens(self) -> int:
        """Symbols that are not markers."""
        return self.num_symbols - NUM_MARKERS * self.num_sentences


def _is_possible(name: str, value: Any) -> bool:
    match name:
        case "sha256":
            return is_sha256(value)
        case "is_heldout":
            return isinstance(value, bool)
        case "bad_places":
            return _are_counts(value, width=3)
        case "inputs":
            return value is None or _are_counts(value, width=2)
        case _:
            return is_count(value)


def _are_counts(value: Any, *, width: int) -> bool:
    """Return whether a value is a list of lists of `width` counts."""
    return isinstance(value, list) and all(
        isinstance(row, list) and len(row) == width and all(map(is_count, row)) for row in value
    )


def is_sha256(value: Any) -> bool:
    """Return whether a value from JSON is a SHA-256 in lower-case hexadecimal."""
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


class Shard:
    """The arrays of a shard, memory-mapped.

    Opening checks the header but not the arrays; `find_damage` reads those.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            mapped = _map_file(path)
            header, start = _read_header(mapped)
            self.facts = _read_facts(header, num_bytes=len(mapped))
            arrays = {
                name: _map_array(mapped, header[name], start, dtype=_DTYPES[name])
                for name in ARRAYS
            }
            _check_lengths(arrays, self.facts)
        except FileNotFoundError:
            raise DataError(f"{path} is missing; prepare the corpus again") from None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{path} is damaged ({error!s:.200}); prepare the corpus again with --restart"
            ) from None
        self.symbols = arrays["symbols"]  # (N,)
        self.sentence_starts = arrays["sentence_starts"]  # (S + 1,) offsets in `symbols`
        self.breaks = arrays["breaks"]  # number of sentences before each end of a document
        self.type_counts = arrays["type_counts"]  # (T,)
        self.type_offsets = arrays["type_offsets"]  # (T + 1,) offsets in `type_bytes`
        self.type_bytes = arrays["type_bytes"]
        self._type_view = self.type_bytes.data

    def types(self) -> list[str]:
        """Return all types in order."""
        return self.type_bytes.tobytes().decode("utf-8").split("\n")[:-1]

    def spell(self, types: NDArray[Any]) -> list[str]:
        """Return the spellings of some types."""
        starts = self.type_offsets[types].tolist()
        ends = self.type_offsets[types + 1].tolist()
        view = self._type_view
        return [
            str(view[start : end - _LINE_FEED], "utf-8")
            for start, end in zip(starts, ends, strict=True)
        ]

    def type_lengths(self) -> NDArray[np.int64]:
        """Return (T,) the number of characters of each type, plus one for a separator."""
        if not len(self.type_counts):
            return np.zeros(0, np.int64)
        starts_character = (self.type_bytes & 0xC0) != 0x80
        return np.add.reduceat(starts_character, self.type_offsets[:-1], dtype=np.int64)

    def find_damage(self) -> str | None:
        """Read all arrays; return what is wrong with them, or None."""
        if _hash_arrays({name: getattr(self, name) for name in ARRAYS}) != self.facts.sha256:
            return "its checksum differs"
        # A checksum does not protect against malicious files.
        return self._find_bad_sentences() or self._find_bad_spellings()

    def _find_bad_sentences(self) -> str | None:
        starts = self.sentence_starts
        if not _is_rising(starts, end=len(self.symbols)):
            return "its sentences overlap"
        if self.symbols.max(initial=0) >= len(self.type_counts) + NUM_MARKERS:
            return "it has symbols without a spelling"
        begins, ends = self.symbols[starts[:-1]], self.symbols[starts[1:] - 1]
        if np.any(begins != BEGIN) or np.any(ends != END):
            return "its sentences lack markers"
        return None

    def _find_bad_spellings(self) -> str | None:
        if not _is_rising(self.type_offsets, end=len(self.type_bytes)):
            return "its spellings overlap"
        try:
            num_lines = self.type_bytes.tobytes().decode("utf-8").count("\n")
        except UnicodeDecodeError:
            return "its spellings are not UTF-8"
        ends = self.type_offsets[1:] - _LINE_FEED
        if num_lines != len(ends) or np.any(self.type_bytes[ends] != ord("\n")):
            return "its spellings are not one per line"
        return None


def write_shard(
    path: Path, sentences: Iterable[list[str]], *, facts: Callable[[], dict[str, Any]]
) -> ShardFacts:
    """Write sentences; an empty one ends a document. `facts` is called after the last sentence."""
    from safetensors.numpy import save  # noqa: PLC0415  not needed to read a corpus

    arrays = _number_tokens(sentences)
    all_facts = {
        "sha256": _hash_arrays(arrays),
        "num_symbols": len(arrays["symbols"]),
        "num_sentences": len(arrays["sentence_starts"]) - 1,
        "num_types": len(arrays["type_counts"]),
        **facts(),
    }
    # A single entry, because safetensors writes several in no fixed order.
    about = json.dumps({"format": FORMAT, "facts": all_facts})
    data = save(arrays, metadata={"elmore": about})
    with replace_file(path) as temporary:
        temporary.write_bytes(data)
    return ShardFacts(num_bytes=len(data), **all_facts)


def _number_tokens(sentences: Iterable[list[str]]) -> dict[str, NDArray[Any]]:
    """Assign numbers to distinct tokens in order of appearance; record sentences and documents."""
    numbers: defaultdict[str, int] = defaultdict(count(NUM_MARKERS).__next__)
    find_number = numbers.__getitem__
    symbols = array("I")
    sentence_starts = array("I")
    breaks: list[int] = []
    for sentence in sentences:
        if not sentence:
            breaks.append(len(sentence_starts))
            continue
        sentence_starts.append(len(symbols))
        symbols.append(BEGIN)
        symbols.extend(map(find_number, sentence))
        symbols.append(END)
    sentence_starts.append(len(symbols))
    all_symbols = np.array(symbols, _U32)
    lines = [f"{token}\n".encode() for token in numbers]
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
    """Return the header of a safetensors file and the offset of its arrays."""
    start = 8 + int.from_bytes(mapped[:8], "little")
    if start > min(len(mapped), MAX_HEADER_BYTES):
        raise ValueError("its header is too long")
    return json.loads(mapped[8:start]), start


def _read_facts(header: dict[str, Any], *, num_bytes: int) -> ShardFacts:
    about = json.loads(header["__metadata__"]["elmore"])
    if about["format"] != FORMAT:
        raise ValueError(f"it has format {about['format']}, this version reads format {FORMAT}")
    return ShardFacts.from_json({"num_bytes": num_bytes, **about["facts"]})


def _map_array(
    mapped: mmap.mmap, entry: dict[str, Any], start: int, *, dtype: np.dtype[Any]
) -> NDArray[Any]:
    first, end = entry["data_offsets"]
    if entry["dtype"] != _DTYPE_NAMES[dtype]:
        raise ValueError(f"an array has type {entry['dtype']!r:.60}")
    if not (is_count(first) and is_count(end) and first <= end <= len(mapped) - start):
        raise ValueError("it is truncated")
    return np.frombuffer(mapped, dtype, count=(end - first) // dtype.itemsize, offset=start + first)


def _check_lengths(arrays: Mapping[str, NDArray[Any]], facts: ShardFacts) -> None:
    for name, length in (
        ("symbols", facts.num_symbols),
        ("sentence_starts", facts.num_sentences + 1),
        ("type_counts", facts.num_types),
        ("type_offsets", facts.num_types + 1),
    ):
        if len(arrays[name]) != length:
            raise ValueError(f"{name} has length {len(arrays[name])} instead of {length}")


def _is_rising(numbers: NDArray[Any], *, end: int) -> bool:
    """Return whether numbers increase strictly from 0 to `end`."""
    return bool(numbers[0] == 0 and numbers[-1] == end and np.all(numbers[1:] > numbers[:-1]))

"""Context-free vectors of the tokens seen last, so that each is encoded once.

The vectors stand in one table, and a batch points into it. A token's vector has the same bits
whether it was there already or not: encoding it does not depend on what is encoded beside it.
"""

import os
from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from threading import Lock
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.read.reader import Reader
from elmore.text.batches import NUM_MARKERS, Speller, place_tokens

# Spelled out, a token of the original model needs 200 kB while its filters run.
TOKENS_AT_ONCE = 256


_caches: "WeakSet[TokenCache]" = WeakSet()


class TokenCache:
    """The least recently used tokens make room for new ones."""

    def __init__(self, reader: Reader, speller: Speller, *, size: int) -> None:
        self.reader = reader
        self._speller = speller
        self.size = size
        self._places: OrderedDict[str, int] = OrderedDict()
        self._free: list[int] = []
        self._lock = Lock()  # a server's threads share one table
        _caches.add(self)
        self._vectors = self._encode([], with_markers=True)  # (2 + capacity, D)

    def find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the flat (N, D) vectors of the sentences' tokens, markers around each."""
        with self._lock:
            return self._find(sentences)

    def _find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        wanted = dict.fromkeys(chain.from_iterable(sentences))
        missing = []
        known, move_to_end = self._places, self._places.move_to_end
        for token in wanted:
            if token in known:
                move_to_end(token)
            else:
                missing.append(token)
        self._make_room(len(wanted))
        for start in range(0, len(missing), TOKENS_AT_ONCE):
            self._add(missing[start : start + TOKENS_AT_ONCE])
        return _take_rows(self._vectors, place_tokens(sentences, self._places))

    def clear(self) -> None:
        """Forget all tokens; needed when the encoder's weights have changed."""
        with self._lock:
            self._places.clear()
            self._free.clear()
            self._vectors = self._encode([], with_markers=True)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, so that an embedder can be copied and sent to other processes."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())
        _caches.add(self)

    def reset_after_fork(self) -> None:
        """Take a new lock: the threads that had or awaited the old one are not in this process.

        A lock that looks free may not be: a thread that has got it marks it as locked only when it
        has the interpreter's lock too. But then that thread has not changed the table yet.
        """
        was_locked = self._lock.locked()
        self._lock = Lock()
        if was_locked:  # the table may be half changed
            self._places.clear()
            self._free = list(range(NUM_MARKERS, len(self._vectors)))

    def _make_room(self, num_wanted: int) -> None:
        """Grow the table to its size, or further for a batch of more distinct tokens than that."""
        capacity = len(self._vectors) - NUM_MARKERS
        if num_wanted + len(self._places) <= capacity:
            return
        wanted = min(max(2 * capacity, num_wanted + len(self._places), 256), self.size)
        wanted = max(wanted, num_wanted)
        if wanted > capacity:
            grown = self._vectors.new_empty((NUM_MARKERS + wanted, self._vectors.shape[1]))
            grown[: len(self._vectors)] = self._vectors
            self._vectors = grown
            self._free += range(NUM_MARKERS + capacity, len(grown))

    def _add(self, tokens: list[str]) -> None:
        vectors = self._encode(tokens)  # first: interrupted here, the table is still right
        while len(self._free) < len(tokens):
            # Tokens of this batch were moved to the end, so the first is not one of them.
            self._free.append(self._places.popitem(last=False)[1])
        places = self._free[: -len(tokens) - 1 : -1]  # from the end, as they are taken below
        _put_rows(self._vectors, torch.tensor(places), vectors)
        for token in tokens:
            self._places[token] = self._free.pop()

    @torch.inference_mode()
    def _encode(self, tokens: list[str], *, with_markers: bool = False) -> Tensor:
        ids = self._speller.spell(tokens, with_markers=with_markers)
        return self.reader.encode(ids.to(self.reader.device))


# On the CPU by numpy: torch shares such small copies out to its threads, and where another program
# has a core, they wait for each other for milliseconds.
def _take_rows(table: Tensor, places: Tensor) -> Tensor:
    """Return table[places]."""
    if table.device.type != "cpu":
        return table.index_select(0, places.to(table.device))
    return torch.from_numpy(_as_bytes(table).take(places.numpy(), axis=0)).view(table.dtype)


def _put_rows(table: Tensor, places: Tensor, rows: Tensor) -> None:
    """Set table[places]."""
    if table.device.type != "cpu":
        table[places.to(table.device)] = rows
    else:
        _as_bytes(table)[places.numpy()] = _as_bytes(rows.contiguous())


def _as_bytes(table: Tensor) -> NDArray[np.uint8]:
    """Return the same memory for numpy, which has no bfloat16."""
    return table.view(torch.uint8).numpy()


def _reset_after_fork() -> None:
    for cache in list(_caches):
        cache.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)

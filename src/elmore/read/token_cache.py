"""An LRU cache of context-free token vectors, so that frequent tokens are encoded once.

The vectors are rows of one table. A token's vector has the same bits whether it was cached or not,
because encoding it does not depend on the tokens encoded with it.
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
from elmore.text.batches import NUM_MARKERS, TokenSpeller, place_tokens

# A token of the original model needs 200 kB while its character filters run.
TOKENS_AT_ONCE = 256


_caches: "WeakSet[TokenCache]" = WeakSet()


class TokenCache:
    """Caches token vectors; the least recently used ones are evicted."""

    def __init__(self, reader: Reader, speller: TokenSpeller, *, size: int) -> None:
        self.reader = reader
        self._speller = speller
        self.size = size
        self._rows: OrderedDict[str, int] = OrderedDict()
        self._free: list[int] = []
        self._lock = Lock()  # a server's threads share one table
        _caches.add(self)
        self._vectors = self._encode([], with_markers=True)  # (2 + capacity, D)

    def find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the flat (N, D) token vectors of the sentences, with markers around each one."""
        with self._lock:
            return self._find(sentences)

    def _find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        distinct = dict.fromkeys(chain.from_iterable(sentences))
        missing = []
        known, move_to_end = self._rows, self._rows.move_to_end
        for token in distinct:
            if token in known:
                move_to_end(token)
            else:
                missing.append(token)
        self._make_room(len(distinct))
        for start in range(0, len(missing), TOKENS_AT_ONCE):
            self._add(missing[start : start + TOKENS_AT_ONCE])
        return _take_rows(self._vectors, place_tokens(sentences, self._rows))

    def clear(self) -> None:
        """Remove all tokens; needed when the encoder's weights have changed."""
        with self._lock:
            self._rows.clear()
            self._free.clear()
            self._vectors = self._encode([], with_markers=True)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, so that an embedder can be copied and sent to other processes."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())
        _caches.add(self)

    def reset_after_fork(self) -> None:
        """Replace the lock, because the threads that held or awaited it are not in this process.

        A lock that looks free may have been taken: a thread marks it as locked only once it also
        has the GIL. But then that thread has not changed the table yet.
        """
        was_locked = self._lock.locked()
        self._lock = Lock()
        if was_locked:  # the table may be half updated
            self._rows.clear()
            self._free = list(range(NUM_MARKERS, len(self._vectors)))

    def _make_room(self, num_tokens: int) -> None:
        """Grow the table up to `size`, or more if one batch has more distinct tokens."""
        capacity = len(self._vectors) - NUM_MARKERS
        if num_tokens + len(self._rows) <= capacity:
            return
        new_capacity = min(max(2 * capacity, num_tokens + len(self._rows), 256), self.size)
        new_capacity = max(new_capacity, num_tokens)
        if new_capacity > capacity:
            grown = self._vectors.new_empty((NUM_MARKERS + new_capacity, self._vectors.shape[1]))
            _put_rows(grown, torch.arange(len(self._vectors)), self._vectors)
            self._vectors = grown
            self._free += range(NUM_MARKERS + capacity, len(grown))

    def _add(self, tokens: list[str]) -> None:
        vectors = self._encode(tokens)  # first, so that an interrupt here leaves the table intact
        while len(self._free) < len(tokens):
            # Tokens of this batch were moved to the end, so the first one is not among them.
            self._free.append(self._rows.popitem(last=False)[1])
        rows = self._free[: -len(tokens) - 1 : -1]  # from the end, in the order of pop() below
        _put_rows(self._vectors, torch.tensor(rows), vectors)
        for token in tokens:
            self._rows[token] = self._free.pop()

    @torch.inference_mode()
    def _encode(self, tokens: list[str], *, with_markers: bool = False) -> Tensor:
        ids = self._speller.spell(tokens, with_markers=with_markers)
        return self.reader.encode(ids.to(self.reader.device))


# On the CPU we use numpy. torch splits even such small copies among its threads, and if another
# program uses a core, they wait for each other for milliseconds.
def _take_rows(table: Tensor, rows: Tensor) -> Tensor:
    """Return table[rows]."""
    if table.device.type != "cpu":
        return table.index_select(0, rows.to(table.device))
    if not len(rows):  # an empty numpy array cannot be viewed as another type
        return table[:0]
    return torch.from_numpy(_as_bytes(table).take(rows.numpy(), axis=0)).view(table.dtype)


def _put_rows(table: Tensor, rows: Tensor, vectors: Tensor) -> None:
    """Set table[rows] to `vectors`."""
    if table.device.type != "cpu":
        table[rows.to(table.device)] = vectors
    else:
        _as_bytes(table)[rows.numpy()] = _as_bytes(vectors.contiguous())


def _as_bytes(table: Tensor) -> NDArray[np.uint8]:
    """Return a view of the same memory as bytes, because numpy has no bfloat16."""
    return table.view(torch.uint8).numpy()


def _reset_after_fork() -> None:
    for cache in list(_caches):
        cache.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)

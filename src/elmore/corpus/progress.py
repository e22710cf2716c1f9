"""Progress of preparing a corpus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from elmore.corpus.shards import ShardFacts
from elmore.corpus.text_chunks import Chunk


@dataclass(frozen=True, kw_only=True)
class PrepareProgress:
    """How much of a stage is done."""

    stage: str  # "reading" counts bytes of the files, "indexing" shards
    num_done: int
    num_total: int | None  # None if unknown, for example for standard input
    num_tokens: int
    num_new_tokens: int  # without those of an interrupted run


OnProgress = Callable[[PrepareProgress], None]


class ProgressCounter:
    """Adds up and reports progress."""

    def __init__(self, inputs: Sequence[dict[str, Any]], on_progress: OnProgress | None) -> None:
        sizes = [entry["size"] for entry in inputs]
        self._before = list(accumulate((size or 0 for size in sizes), initial=0))
        self._total = None if None in sizes else sum(sizes)
        self._on_progress = on_progress
        self._num_bytes = 0
        self._num_tokens = 0
        self._num_new_tokens = 0

    def note_shard(self, chunk: Chunk, facts: ShardFacts, *, is_new: bool) -> None:
        """Count a finished shard."""
        last = chunk.excerpts[-1]
        self._num_bytes = max(self._num_bytes, self._before[last.source_number] + last.position)
        self._num_tokens += facts.num_tokens
        self._num_new_tokens += facts.num_tokens if is_new else 0
        self._report("reading", self._num_bytes, self._total)

    def count_shards(self, num_shards: int) -> Callable[[], None]:
        """Return a function to call after every indexed shard."""
        numbers = iter(range(1, num_shards + 1))
        return lambda: self._report("indexing", next(numbers, num_shards), num_shards)

    def _report(self, stage: str, num_done: int, num_total: int | None) -> None:
        if self._on_progress is not None:
            self._on_progress(
                PrepareProgress(
                    stage=stage,
                    num_done=num_done,
                    num_total=num_total,
                    num_tokens=self._num_tokens,
                    num_new_tokens=self._num_new_tokens,
                )
            )

"""How far a job over many files has come, over all its workers."""

from collections.abc import Callable
from dataclasses import dataclass

from elmore import TextShard


@dataclass(kw_only=True)
class FilesProgress:
    """What this run has done of the shards that it found undone."""

    num_shards: int
    num_bytes: int  # of text
    done_shards: int = 0
    done_bytes: int = 0
    num_tokens: int = 0


OnProgress = Callable[[FilesProgress], None]


class WorkerProgress:
    """Adds up what workers report.

    Bytes of a shard that is not done are estimated from its characters, and corrected at its end.
    """

    def __init__(self, shards: list[TextShard], on_progress: OnProgress | None) -> None:
        self._progress = FilesProgress(
            num_shards=len(shards), num_bytes=sum(shard.num_bytes for shard in shards)
        )
        self._on_progress = on_progress
        self._estimates: dict[int, int] = {}

    def add(self, shard: TextShard, num_tokens: int, num_characters: int) -> None:
        """Count tokens of a shard; negative numbers take back what does not count."""
        before = self._estimates.get(shard.number, 0)
        now = max(0, min(before + num_characters, shard.num_bytes))
        self._estimates[shard.number] = now
        self._progress.num_tokens += num_tokens
        self._progress.done_bytes += now - before
        self._report()

    def lose(self, shard: TextShard) -> None:
        """Discount a shard whose worker was lost."""
        self._progress.done_bytes -= self._estimates.pop(shard.number, 0)
        self._report()

    def finish(self, shard: TextShard) -> None:
        """Count a shard as done."""
        self._progress.done_bytes += shard.num_bytes - self._estimates.pop(shard.number, 0)
        self._progress.done_shards += 1
        self._report()

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._progress)

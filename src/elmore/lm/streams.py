"""Cut a corpus into rows that are read in parallel, one window per step.

The symbols of all sentences form a circle. Row r starts at a sentence near r / R of the way around
and reads one window after another, with its LSTM state carried over; after an epoch it has reached
the start of the next row. So the step number alone determines what is read, and training can resume
at any step.

Shapes: R rows in all, B rows of a window, T symbols, U distinct tokens.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmore.corpus.part import CorpusPart
from elmore.errors import DataError
from elmore.text.batches import NUM_MARKERS

Ids = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingWindow:
    """What both directions read and predict in one step; the forward LM comes first."""

    tokens: list[str]  # U distinct tokens, without the markers
    positions: Ids  # (2, T, B) inputs: 0 and 1 are the markers, then come the tokens
    targets: Ids  # (2, T, B) word ids of the next symbols
    is_predicted: NDArray[np.bool_]  # (T, B) False at a sentence's last symbol, in either direction


class Streams:
    """The rows of a part of a corpus."""

    def __init__(self, part: CorpusPart, *, num_rows: int, window: int) -> None:
        if not part.num_symbols:
            raise DataError("the corpus has no text to train on; prepare it from more text")
        self.part = part
        self.num_rows = num_rows
        self.window = window
        self._starts: dict[tuple[int, int], Ids] = {}

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which the rows together read the whole part once."""
        return max(1, round(self.part.num_symbols / (self.num_rows * self.window)))

    def find_starts(self, first_row: int, end_row: int) -> Ids:
        """Return the symbols at which a range of rows starts."""
        # Found when asked for: a process then opens only the shards that its own rows read.
        if (first_row, end_row) not in self._starts:
            rows = np.arange(first_row, end_row, dtype=np.int64)
            even = rows * self.part.num_symbols // self.num_rows
            self._starts[first_row, end_row] = self.part.sentence_bounds(even)[0]
        return self._starts[first_row, end_row]

    def read(self, step: int, *, first_row: int = 0, num_rows: int | None = None) -> TrainingWindow:
        """Return the window of a range of rows at a step, counted from 0."""
        end_row = self.num_rows if num_rows is None else first_row + num_rows
        offsets = np.arange(self.window + 1)[:, None] + step * self.window  # (T + 1, 1)
        forward = (self.find_starts(first_row, end_row) + offsets) % self.part.num_symbols
        begin, end = self.part.sentence_bounds(forward)
        # The backward LM reads the same sentences, each from its end.
        backward = begin + end - 1 - forward
        found = self.part.look_up(np.stack([forward, backward]))
        tokens, positions = _drop_unread(found.tokens, found.positions[:, :-1])
        # In both directions the target is the next symbol of the row, within the sentence.
        return TrainingWindow(
            tokens=tokens,
            positions=positions,
            targets=np.ascontiguousarray(found.word_ids[:, 1:]),
            is_predicted=forward[:-1] != end[:-1] - 1,
        )


def _drop_unread(tokens: list[str], positions: Ids) -> tuple[list[str], Ids]:
    """Drop tokens that are only targets, never inputs."""
    is_read = np.zeros(NUM_MARKERS + len(tokens), dtype=np.bool_)
    is_read[positions] = True
    is_read[:NUM_MARKERS] = True
    kept = [tokens[index] for index in is_read[NUM_MARKERS:].nonzero()[0]]
    return kept, (is_read.cumsum() - 1)[positions]

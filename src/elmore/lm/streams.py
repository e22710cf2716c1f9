"""Cut a corpus into rows that are read side by side, a window at a time.

The symbols of all sentences stand in one circle. Row r begins at a sentence near r / R of the way
and reads on, window after window, with its state carried; after an epoch it has come to where the
next row began. So a step number is a position in the training, and training can start anywhere.

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
    """What both directions read and predict in one step, step by step: the forward LM first."""

    tokens: list[str]  # U distinct tokens, without the markers
    positions: Ids  # (2, T, B) what is read: 0 and 1 the markers, then the tokens
    targets: Ids  # (2, T, B) word ids of what comes next
    is_predicted: NDArray[np.bool_]  # (T, B) False at a sentence's last symbol, in either direction


class Streams:
    """The rows of a part of a corpus."""

    def __init__(self, part: CorpusPart, *, num_rows: int, window: int) -> None:
        if not part.num_symbols:
            raise DataError("the corpus has no text to train on; prepare it from more text")
        self.part = part
        self.num_rows = num_rows
        self.window = window
        even = np.arange(num_rows, dtype=np.int64) * part.num_symbols // num_rows
        self._starts = part.sentence_bounds(even)[0]

    @property
    def steps_per_epoch(self) -> int:
        """Steps until the rows together have read the whole part."""
        return max(1, round(self.part.num_symbols / (self.num_rows * self.window)))

    def read(self, step: int, *, first_row: int = 0, num_rows: int | None = None) -> TrainingWindow:
        """Return the window of some of the rows at a step, counted from 0."""
        rows = slice(first_row, None if num_rows is None else first_row + num_rows)
        offsets = np.arange(self.window + 1)[:, None] + step * self.window  # (T + 1, 1)
        forward = (self._starts[rows] + offsets) % self.part.num_symbols  # (T + 1, B)
        begin, end = self.part.sentence_bounds(forward)
        # The backward LM reads the same sentences, each from its end.
        backward = begin + end - 1 - forward
        found = self.part.look_up(np.stack([forward, backward]))
        tokens, positions = _keep_read(found.tokens, found.positions[:, :-1])
        # In either direction the next symbol of a row is the one to predict, within a sentence.
        return TrainingWindow(
            tokens=tokens,
            positions=positions,
            targets=np.ascontiguousarray(found.word_ids[:, 1:]),
            is_predicted=forward[:-1] != end[:-1] - 1,
        )


def _keep_read(tokens: list[str], positions: Ids) -> tuple[list[str], Ids]:
    """Leave out tokens that are predicted but not read."""
    is_read = np.zeros(NUM_MARKERS + len(tokens), dtype=np.bool_)
    is_read[positions] = True
    is_read[:NUM_MARKERS] = True
    kept = [tokens[index] for index in is_read[NUM_MARKERS:].nonzero()[0]]
    return kept, (is_read.cumsum() - 1)[positions]

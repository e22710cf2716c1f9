"""Examples in a temporary file, so that their number is bounded by the disk and not by memory."""

import mmap
import pickle
import tempfile
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import islice
from operator import index
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from elmore.files.atomic import explaining_write_errors

Example = TypeVar("Example")

# Neighbours are pickled together, and what they share, such as the paragraph of several questions,
# is stored once. To read one is to read all of them, so more would cost more time than disk.
EXAMPLES_IN_BLOCK = 4
# Blocks kept as objects: for reading in order, and for questions about one paragraph, which are of
# one length and so meet in a batch.
NUM_KEPT_BLOCKS = 16


class ExampleStore(Sequence[Example]):
    """A list of examples that is read from the disk, one at a time, and cannot be changed.

    `lengths` has a number for each, as `count_tokens` gives it. In memory an example takes some
    6 bytes. The file has no name and is gone with the store; nobody else can write to it, so what
    is unpickled is what was pickled.
    """

    def __init__(
        self, examples: Iterable[Example], *, count_tokens: Callable[[Example], int]
    ) -> None:
        lengths, starts = array("i"), array("q", [0])  # tokens of examples, bytes before blocks
        remaining = iter(examples)
        with tempfile.TemporaryFile() as file:
            while block := list(islice(remaining, EXAMPLES_IN_BLOCK)):
                lengths.extend(count_tokens(example) for example in block)
                pickled = pickle.dumps(block, protocol=pickle.HIGHEST_PROTOCOL)
                starts.append(starts[-1] + len(pickled))
                # Not around the reading of examples, whose errors are about other files.
                with explaining_write_errors(Path(tempfile.gettempdir())):
                    file.write(pickled)
            with explaining_write_errors(Path(tempfile.gettempdir())):
                file.flush()
            # Mapped, not read: a mapping has no position that threads and processes would share.
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if lengths else b""
        self.lengths: NDArray[np.int32] = np.array(lengths, dtype=np.int32)
        self.num_bytes = starts[-1]
        self._read_block = lru_cache(NUM_KEPT_BLOCKS)(partial(_read_block, content, starts))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, number: int) -> Example:  # type: ignore[override]  # no slices
        position = index(number)
        position += len(self) if position < 0 else 0
        if not 0 <= position < len(self):
            raise IndexError(f"there is no example {number}; the store has {len(self)}")
        return self._read_block(position // EXAMPLES_IN_BLOCK)[position % EXAMPLES_IN_BLOCK]


def _read_block(content: mmap.mmap | bytes, starts: "array[int]", block: int) -> list[Any]:
    return list(pickle.loads(content[starts[block] : starts[block + 1]]))

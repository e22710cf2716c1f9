"""Keep examples in a temporary file, so that their number is limited by disk, not by memory."""

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

# Neighbors are pickled together, and what they share, such as the paragraph of several questions,
# is stored once. Reading one reads all of them, so larger blocks would save disk but cost time.
EXAMPLES_IN_BLOCK = 4
# Unpickled blocks to cache: for reading in order, and for questions about the same paragraph, which
# have the same length and so end up in the same batch.
NUM_KEPT_BLOCKS = 16


class ExampleStore(Sequence[Example]):
    """A read-only list of examples that are read from disk, one at a time.

    `lengths` has the result of `count_tokens` for each. An example takes about 6 bytes of memory.
    The file has no name and disappears with the store. Nobody else can write to it, so it is safe
    to unpickle.
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
                # Only around the write: errors while reading examples are about other files.
                with explaining_write_errors(Path(tempfile.gettempdir())):
                    file.write(pickled)
            with explaining_write_errors(Path(tempfile.gettempdir())):
                file.flush()
            # Memory-mapped: a file's position would be shared by threads and processes.
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

"""A graph for approximate search in one layer of an index, by usearch.

Exact search reads a whole layer. With many millions of tokens, a graph is faster; it needs about as
much space as the layer again, and takes long to build.

Shapes: N rows, D numbers per row.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.errors import DataError, MissingExtraError
from elmore.explore.index_state import damaged
from elmore.explore.uses import Array
from elmore.files.atomic import replace_file, replace_json
from elmore.files.growing_file import FileFacts, compute_crc32
from elmore.files.owned_folder import read_marker

FORMAT = 1
KIND = "elmore search graph"
ROWS_AT_ONCE = 10_000


class SearchGraph:
    """The graph of a layer, next to its vectors; `layer2.graph.json` describes it."""

    def __init__(self, folder: Path, layer: int, vectors: NDArray[np.float16]) -> None:
        self._folder = folder
        self._layer = layer
        self._vectors = vectors
        self._facts_path = folder / f"layer{layer}.graph.json"
        self._graph: Any = None

    def build(self, on_progress: Callable[[int], None] | None = None) -> None:
        """Build the graph, or add the rows that came after it was built."""
        graph, num_done = self._read() if self._facts_path.is_file() else (self._make(), 0)
        for start in range(num_done, len(self._vectors), ROWS_AT_ONCE):
            rows = np.asarray(self._vectors[start : start + ROWS_AT_ONCE])
            graph.add(np.arange(start, start + len(rows)), rows)
            if on_progress is not None:
                on_progress(start + len(rows))
        path = self._folder / f"layer{self._layer}-{len(self._vectors)}.usearch"
        with replace_file(path) as temporary:
            graph.save(str(temporary))
        num_bytes = path.stat().st_size
        facts = {
            "kind": KIND,
            "format": FORMAT,
            "rows": len(self._vectors),
            "num_bytes": num_bytes,
            "crc32": compute_crc32(path, num_bytes=num_bytes),
        }
        replace_json(self._facts_path, facts)
        for other in self._folder.glob(f"layer{self._layer}-*.usearch"):
            if other != path:
                other.unlink()
        self._graph = None

    def search(self, query: Array, count: int) -> NDArray[np.int64]:
        """Return about the `count` nearest rows, in no order."""
        if self._graph is None:
            graph, num_rows = self._read()
            if num_rows != len(self._vectors):
                raise DataError(
                    f"{self._facts_path} has {num_rows:,} of {len(self._vectors):,} tokens, "
                    "because text was added since; build the graph again with build_graph"
                )
            self._graph = graph
        found = self._graph.search(np.asarray(query, np.float32), min(count, len(self._vectors)))
        return np.asarray(found.keys, np.int64)

    def _make(self) -> Any:
        return _import_usearch()(ndim=self._vectors.shape[1], metric="cos", dtype="f16")

    def _read(self) -> tuple[Any, int]:
        """Return the graph on the disk and its number of rows."""
        usearch = _import_usearch()
        if not self._facts_path.is_file():
            raise DataError(
                f"{self._folder} has no graph of layer {self._layer}; build it with build_graph, "
                "or search exactly"
            )
        content = read_marker(self._facts_path, wanted_format=FORMAT, kind=KIND)
        numbers: list[Any] = [content.get(name) for name in ("rows", "num_bytes", "crc32")]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise damaged(f"{self._facts_path} is damaged")
        num_rows, num_bytes, crc32 = numbers
        path = self._folder / f"layer{self._layer}-{num_rows}.usearch"
        # usearch trusts what it reads, so that the checksum is compared first.
        if damage := FileFacts(num_bytes=num_bytes, crc32=crc32).find_damage(path, reads=True):
            raise damaged(damage)
        graph = usearch.restore(str(path))
        if graph is None or len(graph) != num_rows or graph.ndim != self._vectors.shape[1]:
            raise damaged(f"{path} is damaged (it is not the graph of this layer)")
        return graph, num_rows


def _import_usearch() -> Any:
    try:
        from usearch.index import Index  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingExtraError(needed_for="approximate search", extra="search") from None
    return Index

"""Sentence markers in the ONNX graph: added around each sentence, and dropped from the results.

Shapes: B sentences, T tokens of the longest, without markers in inputs and results.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from elmore.export.onnx.graph import Graph


def add_markers(
    graph: Graph,
    ids: str,
    *,
    lengths: str,
    begin: ArrayLike,
    end: ArrayLike,
    id_shape: Sequence[int],
) -> str:
    """Put the ids of the markers around each sentence: (B, T, ...) to (B, T + 2, ...).

    `id_shape` is the shape of the ids of one token.
    """
    dims = [1, *id_shape]
    begin_ids, end_ids = (graph.integers(np.reshape(marker, [1, *dims])) for marker in (begin, end))
    column = graph.add("Concat", find_length(graph, ids, axis=0), graph.integers(dims), axis=0)
    marked = graph.add(
        "Concat",
        graph.add("Expand", begin_ids, column),
        ids,
        graph.add("Expand", end_ids, column),
        axis=1,
    )
    # In shorter sentences, the end marker comes earlier.
    last = graph.add("Add", graph.add("Unsqueeze", lengths, graph.integers([1])), graph.integers(1))
    is_end = graph.add("Equal", _number_tokens(graph, marked), last)
    if id_shape:
        is_end = graph.add("Unsqueeze", is_end, graph.integers([2]))
    return graph.add("Where", is_end, end_ids, marked)


def drop_markers(graph: Graph, layers: str, *, lengths: str) -> str:
    """Return (L, T + 2, B, D) as (B, L, T, D), with zeros at padding."""
    tokens = graph.add(
        "Slice", layers, graph.integers([1]), graph.integers([-1]), graph.integers([1])
    )
    by_sentence = graph.add("Transpose", tokens, perm=[2, 0, 1, 3])
    numbers = _number_tokens(graph, by_sentence, axis=2)
    is_token = graph.add("Less", numbers, graph.add("Unsqueeze", lengths, graph.integers([1])))
    is_token = graph.add("Unsqueeze", is_token, graph.integers([1, 3]))
    return graph.add("Where", is_token, by_sentence, graph.number(0.0))


def find_length(graph: Graph, x: str, *, axis: int) -> str:
    """Return the length of an axis, as a list of one number."""
    return graph.add("Gather", graph.add("Shape", x), graph.integers([axis]), axis=0)


def _number_tokens(graph: Graph, x: str, *, axis: int = 1) -> str:
    """Return (1, T) numbers from 0, for T of that axis."""
    length = graph.add("Squeeze", find_length(graph, x, axis=axis), graph.integers([0]))
    numbers = graph.add("Range", graph.integers(0), length, graph.integers(1))
    return graph.add("Unsqueeze", numbers, graph.integers([0]))

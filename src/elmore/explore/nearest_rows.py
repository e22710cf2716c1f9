"""Find the rows of a large f16 matrix that have the highest cosine with a vector, exactly.

numpy has no fast product of f16 matrices. Here blocks that fit into the CPU's cache are converted
to f32 and multiplied, which is as fast as reading them from memory.

Shapes: N rows, D numbers per row.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from elmore.explore.uses import Array, to_unit_length

# 4 MB in f32 for rows of 512.
BLOCK_ROWS = 2048


def cosines_with(vectors: NDArray[np.float16], norms: Array, query: Array) -> Array:
    """Return the cosine of each of (N, D) rows with the (D,) query, computed in f32."""
    rows = torch.from_numpy(vectors)
    unit = torch.from_numpy(to_unit_length(np.asarray(query, np.float32)))
    products = torch.empty(len(rows))
    block = torch.empty((BLOCK_ROWS, rows.shape[1]))
    with torch.inference_mode():
        for start in range(0, len(rows), BLOCK_ROWS):
            part = rows[start : start + BLOCK_ROWS]
            held = block[: len(part)].copy_(part)
            torch.mv(held, unit, out=products[start : start + len(part)])
    cosines = products.numpy()
    cosines /= np.maximum(norms, 1e-12)
    return cosines


def find_highest(values: Array, top: int) -> NDArray[np.int64]:
    """Return where the `top` highest values are, highest first; of equal ones the first."""
    values = np.where(np.isnan(values), -np.inf, values)  # only a damaged file has them
    if top <= 0:
        return np.empty(0, np.int64)
    if top < len(values):
        least = np.partition(values, len(values) - top)[len(values) - top]
        above = np.flatnonzero(values > least)
        equal = np.flatnonzero(values == least)[: top - len(above)]
        chosen = np.sort(np.concatenate((above, equal)))
    else:
        chosen = np.arange(len(values))
    return chosen[np.argsort(-values[chosen], kind="stable")]

"""Draw uses as points in the plane: PCA, or t-SNE by openTSNE.

Shapes: n uses, D numbers per vector.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.errors import DataError, MissingExtraError
from elmore.explore.uses import Array, to_unit_length

# Fewer points have too few neighbors for t-SNE.
MIN_TSNE_USES = 8
PERPLEXITY = 30.0
SEED = 0


class MapMethod(StrEnum):
    """How vectors become points."""

    PCA = "pca"
    """The two directions in which the vectors differ most; exact, in milliseconds."""

    TSNE = "tsne"
    """Similar vectors stay close; distances between far points mean little. Takes seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UseMap:
    """One point per use, in the order of the uses."""

    method: str
    center_by_spelling: bool
    points: list[tuple[float, float]]
    explained: tuple[float, float] | None  # PCA: the share of the variance along each axis


def draw_map(
    vectors: Array, spellings: Sequence[str], *, method: MapMethod, center_by_spelling: bool
) -> UseMap:
    """Return the points of (n, D) vectors, which are scaled to length 1 first."""
    prepared = prepare_vectors(vectors, spellings, center_by_spelling=center_by_spelling)
    points, explained = find_axes(prepared)
    is_pca = method is MapMethod.PCA
    if not is_pca:
        points = _embed_neighbors(prepared, points)
    return UseMap(
        method=str(method),
        center_by_spelling=center_by_spelling,
        points=[(float(x), float(y)) for x, y in points],
        explained=explained if is_pca else None,
    )


def prepare_vectors(vectors: Array, spellings: Sequence[str], *, center_by_spelling: bool) -> Array:
    """Scale vectors to length 1; if asked, subtract the mean of those with the same spelling."""
    units = to_unit_length(vectors)
    if not center_by_spelling:
        return units
    centered = units.copy()
    names = np.array(spellings, dtype=object)
    for name in set(spellings):
        rows = names == name
        centered[rows] -= units[rows].mean(axis=0)
    return centered


def find_axes(vectors: Array) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Return the (n, 2) principal components, and the share of the variance along each.

    The sign of each axis is such that its largest weight is positive.
    """
    if len(vectors) == 0:
        return np.zeros((0, 2)), (0.0, 0.0)
    centered = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    # The singular vectors follow from the smaller of the two products.
    if len(vectors) < vectors.shape[1]:
        values, weights = np.linalg.eigh(centered @ centered.T)  # in ascending order
        axes = centered.T @ weights[:, ::-1][:, :2]
        axes /= np.maximum(np.linalg.norm(axes, axis=0), 1e-12)
    else:
        values, axes = np.linalg.eigh(centered.T @ centered)
        axes = axes[:, ::-1][:, :2]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    points = np.zeros((len(vectors), 2))
    points[:, : axes.shape[1]] = centered @ (axes * signs)
    total = float(values.sum())
    # Rounding leaves a little even if all vectors are the same.
    is_flat = total <= 1e-9 * max(float(np.square(vectors, dtype=np.float64).sum()), 1e-12)
    if is_flat:
        return np.zeros_like(points), (0.0, 0.0)
    shares = [float(share) for share in (*values[::-1][:2] / total, 0.0)]
    return points, (shares[0], shares[1])


def _embed_neighbors(vectors: Array, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (n, 2) points of t-SNE, started from the principal components."""
    if len(vectors) < MIN_TSNE_USES:
        raise DataError(
            f"t-SNE needs at least {MIN_TSNE_USES} uses, there are {len(vectors)}; use method pca"
        )
    tsne = _import_tsne()
    # openTSNE recommends a start this small; equal points would never be separated.
    scale = 1e-4 / max(float(start[:, 0].std()), 1e-12)
    noise = np.random.default_rng(SEED).normal(scale=1e-6, size=start.shape)
    fitted = tsne(
        perplexity=min(PERPLEXITY, (len(vectors) - 1) / 3),
        initialization=start * scale + noise,
        neighbors="exact",
        n_jobs=1,
        random_state=SEED,
    ).fit(np.asarray(vectors, np.float64))
    return np.asarray(fitted)


def _import_tsne() -> Any:
    try:
        from openTSNE import TSNE  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingExtraError(needed_for="t-SNE", extra="explore") from None
    return TSNE

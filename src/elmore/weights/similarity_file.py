"""What sentence vectors for similarity need, on disk; embedding never reads these files.

similarity.safetensors  similarity.json (written last; without it the other is void)

Shapes: D numbers of the chosen layers, K numbers of a sentence vector.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmore.config import MAX_DIM
from elmore.errors import ModelError
from elmore.files.atomic import replace_file, write_json
from elmore.files.untrusted import is_count, read_json
from elmore.weights.model_folder import read_tensors, write_tensors

FORMAT = 1
WEIGHTS, SETTINGS = "similarity.safetensors", "similarity.json"
FILES = [WEIGHTS, SETTINGS]
MAX_WORDS = 20_000
"""Frequent words that are stored; all others count in full."""

Array = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Similarity:
    """How the layers of a sentence's tokens become one vector."""

    layers: str | int | Sequence[int]
    smoothing: float
    """The relative frequency at which a token has half the weight of a rare one."""
    shares: Mapping[str, float]  # relative frequencies of frequent words, in lower case
    mean: Array  # (D,) the mean over sentences
    matrix: Array  # (D, K)
    num_sentences: int  # that mean and matrix were computed from

    @property
    def dim(self) -> int:
        """The width of a sentence vector."""
        return self.matrix.shape[1]

    @property
    def listed_layers(self) -> str | int | list[int]:
        """The layers as they are written to JSON."""
        return self.layers if isinstance(self.layers, str | int) else list(self.layers)

    @property
    def fingerprint(self) -> str:
        """A hash of everything sentence vectors depend on."""
        settings = [self.listed_layers, self.smoothing, dict(self.shares)]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for array in (self.mean, self.matrix):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def write_similarity(folder: Path, similarity: Similarity, *, model: str) -> None:
    """Write the files of a model with this fingerprint into its folder."""
    tensors = {
        "mean": torch.from_numpy(np.ascontiguousarray(similarity.mean)),
        "matrix": torch.from_numpy(np.ascontiguousarray(similarity.matrix)),
    }
    with replace_file(folder / WEIGHTS) as temporary:
        write_tensors(temporary, tensors)
        (folder / SETTINGS).unlink(missing_ok=True)
    settings = {
        "format": FORMAT,
        "model": model,
        "layers": similarity.listed_layers,
        "smoothing": similarity.smoothing,
        "input_dim": len(similarity.mean),
        "output_dim": similarity.dim,
        "num_sentences": similarity.num_sentences,
        "shares": dict(similarity.shares),
    }
    with replace_file(folder / SETTINGS) as temporary:
        write_json(temporary, settings)


def has_similarity(folder: Path) -> bool:
    """Return whether the folder has these files."""
    return (folder / SETTINGS).is_file()


def remove_similarity(folder: Path) -> None:
    """Delete the files, if there are any."""
    for name in reversed(FILES):
        (folder / name).unlink(missing_ok=True)


def read_similarity(folder: Path, *, model: str) -> Similarity:
    """Read the files of a model with this fingerprint; sizes are checked before weights."""
    path = folder / SETTINGS
    settings = read_json(path)
    if settings.get("format") != FORMAT:
        raise ModelError(
            f"{path} has format {settings.get('format')!r:.60}, but this elmore reads {FORMAT}; "
            "update elmore"
        )
    if settings.get("model") != model:
        raise ModelError(
            f"{path} belongs to other weights; call fit_similarity again, or download the whole "
            "folder again"
        )
    _check(settings, path)
    sizes = settings["input_dim"], settings["output_dim"]
    tensors = read_tensors(
        folder / WEIGHTS, {"mean": sizes[:1], "matrix": sizes}, settings=SETTINGS
    )
    return Similarity(
        layers=settings["layers"],
        smoothing=settings["smoothing"],
        shares=settings["shares"],
        mean=tensors["mean"].numpy(),
        matrix=tensors["matrix"].numpy(),
        num_sentences=settings["num_sentences"],
    )


def check_width(similarity: Similarity, *, num_numbers: int, source: str) -> None:
    """Check that a stored similarity fits a model with this many numbers per token."""
    if len(similarity.mean) != num_numbers:
        raise ModelError(
            f"{SETTINGS} of {source} is for {len(similarity.mean)} numbers per token, but the "
            f"model gives {num_numbers}; download the whole folder again"
        )


def _check(settings: Mapping[str, Any], path: Path) -> None:
    layers, shares = settings.get("layers"), settings.get("shares")
    checks = {
        "layers": is_count(layers)
        or isinstance(layers, str)
        or (isinstance(layers, list) and all(map(is_count, layers))),
        "smoothing": _is_share(settings.get("smoothing")),
        "input_dim": is_count(settings.get("input_dim"), least=1, most=MAX_DIM * 100),
        "output_dim": is_count(settings.get("output_dim"), least=1, most=MAX_DIM * 100),
        "num_sentences": is_count(settings.get("num_sentences")),
        "shares": isinstance(shares, dict)
        and len(shares) <= MAX_WORDS
        and all(map(_is_share, shares.values())),
    }
    for name, is_right in checks.items():
        if not is_right:
            raise ModelError(f"{path}: {name!r} is missing or damaged; download the file again")


def _is_share(value: Any) -> bool:
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 < value <= 1

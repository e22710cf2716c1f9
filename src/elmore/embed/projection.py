"""Project vectors to fewer dimensions: PCA, fitted on a sample of text and stored with the model.

Shapes: N vectors, D numbers per vector, `dim` numbers after the projection.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from elmore.arguments import explain_calls
from elmore.embed.embedder import Embedder, load
from elmore.embed.layer_choice import Array, Layers
from elmore.embed.other_names import OTHER_ARGUMENTS
from elmore.errors import ConfigError, DataError, ModelError
from elmore.files.atomic import replace_file
from elmore.files.untrusted import check_file
from elmore.model.rows import extend_rows, extend_weight, multiply, round_up
from elmore.settings import check_range
from elmore.text.files import TextForm
from elmore.text.inputs import GivenSentence, open_input, parse_given

SUFFIX = ".projection.safetensors"
MAX_BYTES = 1 << 30


class Projection:
    """Subtracts the mean and keeps the directions in which vectors differ most."""

    def __init__(self, *, mean: Array, components: Array, variance: float = 0.0) -> None:
        self.variance = variance  # the share that is kept, of the text it was fitted to
        self.mean = np.ascontiguousarray(mean, np.float32)  # (D,)
        self.components = np.ascontiguousarray(components, np.float32)  # (dim, D)
        self._weight = extend_weight(torch.from_numpy(self.components))

    @property
    def dim(self) -> int:
        """The number of dimensions that are left."""
        return len(self.components)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of its numbers."""
        return hashlib.sha256(self.mean.tobytes() + self.components.tobytes()).hexdigest()

    def __call__(self, vectors: Array) -> Array:
        """Project (..., N, D) to (..., N, dim); a row's bits do not depend on the other rows."""
        rows = torch.from_numpy(vectors.reshape(-1, vectors.shape[-1]) - self.mean)
        padded = extend_rows(rows, round_up(len(rows)))
        projected = multiply(padded, self._weight, num_outputs=self.dim)[: len(rows)]
        return projected.numpy().reshape(*vectors.shape[:-1], self.dim)

    def restore(self, projected: Array) -> Array:
        """Return (..., N, D) vectors that are as close as possible to the original ones."""
        return projected @ self.components + self.mean

    def save(self, path: Path, *, about: dict[str, str]) -> None:
        """Write the projection, with facts about how it was fitted."""
        with replace_file(path) as temporary:
            save_file({"mean": self.mean, "components": self.components}, temporary, metadata=about)


@explain_calls(OTHER_ARGUMENTS)
def fit_projection(
    embedder: Embedder | str | Path,
    sentences: str | Path | Iterable[GivenSentence],
    *,
    dim: int,
    out: str | Path | None = None,
    layers: Layers | None = None,
    form: TextForm | str | None = None,
    max_tokens: int = 200_000,
) -> Path:
    """Fit a PCA to the first tokens of a text, and store it with the model; return its folder.

    `out` is the model folder to write, by default the folder that the model was loaded from. The
    result is used by `embed_to_file(..., dim=dim)` and `elmore embed --dim`, with the same
    `layers`. A projection is part of a model, so that vectors of different jobs can be compared.

    ```python
    folder = elmore.fit_projection(elmore.load(), "sample.txt", dim=128, out="english-128")
    elmore.embed_to_file(elmore.load(folder), "book.txt", "book.parquet", dim=128)
    ```
    """
    embedder = embedder if isinstance(embedder, Embedder) else load(embedder)
    name = _name_file(embedder, layers=layers, dim=dim)
    check_range("max_tokens", max_tokens, 1, 1 << 40)
    folder = _find_folder(embedder) if out is None else Path(out)
    given = open_input(sentences, form=form, language=embedder.language)
    parsed = (parse_given(sentence, language=embedder.language) for sentence in given)
    moments = _Moments(embedder.vector_dim)
    for vectors in embedder.stream(parsed, layers=layers):
        moments.add(vectors)
        if moments.number >= max_tokens:
            break
    if moments.number <= dim:
        raise DataError(
            f"the sample has {moments.number} tokens, but fitting {dim} dimensions needs more than "
            f"{dim} (better {100 * dim:,} or more); give more text"
        )
    projection = moments.fit(dim)
    if not (folder / "config.json").exists():
        _save_model(embedder, folder)
    about = {
        "model": embedder.model.fingerprint(),
        "layers": str(embedder.choose_layers(layers)),
        "tokens": str(moments.number),
        "variance": f"{moments.share_kept(projection):.4f}",
    }
    projection.save(folder / name, about=about)
    return folder


def find_projection(embedder: Embedder, *, layers: Layers | None, dim: int) -> Projection:
    """Return the projection that is stored with a model."""
    name = _name_file(embedder, layers=layers, dim=dim)
    path = embedder.find_model_file(name)
    chosen = embedder.choose_layers(layers)
    if path is None:
        raise ModelError(
            f"this model has no projection of layers {chosen} to {dim} dimensions; fit one with "
            f"elmore fit-projection SAMPLE --dim {dim} --layers {chosen} --out FOLDER, and use the "
            "model in that folder"
        )
    projection, about = _read(path)
    if about.get("model") != embedder.model.fingerprint():
        raise ModelError(
            f"{path} was fitted to another model; fit it again with elmore fit-projection"
        )
    if projection.components.shape != (dim, embedder.vector_dim):
        raise ModelError(
            f"{path} has the shape {projection.components.shape}, but "
            f"{(dim, embedder.vector_dim)} is needed; fit it again with elmore fit-projection"
        )
    return projection


def _name_file(embedder: Embedder, *, layers: Layers | None, dim: int) -> str:
    check_range("dim", dim, 1, embedder.vector_dim)
    chosen = embedder.choose_layers(layers)
    if chosen.num_kept is not None or chosen.mix is not None:
        raise ConfigError(
            f"layers is {chosen!s:.60}, but only one vector per token can be projected; choose "
            "average, sum, top or a layer number"
        )
    return f"{chosen}-{dim}{SUFFIX}"


def _find_folder(embedder: Embedder) -> Path:
    folder = embedder.find_model_folder()
    if folder is None:
        raise ConfigError(
            "this model is not in a folder of elmore that can be written; give out, the folder to "
            "store the model and its projection in"
        )
    return folder


def _save_model(embedder: Embedder, folder: Path) -> None:
    # The embedder's own copy may have no weights left that could be saved.
    embedder.load_model().save_pretrained(folder)


def _read(path: Path) -> tuple[Projection, dict[str, str]]:
    if check_file(path) > MAX_BYTES:
        raise ModelError(f"{path} is too large for a projection; use an intact copy")
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in ("mean", "components")}
            about = dict(file.metadata() or {})
    except (SafetensorError, OSError, KeyError) as error:
        raise ModelError(f"{path} is damaged ({error}); use an intact copy") from error
    mean, components = arrays["mean"], arrays["components"]
    are_plain = mean.dtype == components.dtype == np.float32 and components.ndim == 2
    if not are_plain or mean.shape != components.shape[1:] or not np.isfinite(components).all():
        raise ModelError(f"{path} is not a projection; use an intact copy")
    variance = float(about.get("variance", "0"))
    return Projection(mean=mean, components=components, variance=variance), about


class _Moments:
    """Sums over vectors, from which their mean and covariance follow."""

    def __init__(self, dim: int) -> None:
        self.number = 0
        self._sum = np.zeros(dim)
        self._squares: NDArray[Any] = np.zeros((dim, dim))

    def add(self, vectors: Array) -> None:
        """Add (N, D) vectors."""
        wide = vectors.astype(np.float64)
        self.number += len(wide)
        self._sum += wide.sum(axis=0)
        self._squares += wide.T @ wide

    def fit(self, dim: int) -> Projection:
        """Return the projection to the `dim` directions with the largest variance."""
        _, directions = np.linalg.eigh(self._covariance())  # in ascending order
        components = directions[:, ::-1][:, :dim].T
        # A direction may be multiplied by -1; make its largest number positive.
        largest = np.abs(components).argmax(axis=1)
        signs = np.sign(components[np.arange(dim), largest])
        mean = (self._sum / self.number).astype(np.float32)
        return Projection(mean=mean, components=components * signs[:, None])

    def share_kept(self, projection: Projection) -> float:
        """Return the share of the variance that a projection keeps."""
        covariance = self._covariance()
        kept = np.einsum("kd,de,ke->", projection.components, covariance, projection.components)
        return float(kept / max(np.trace(covariance), 1e-30))

    def _covariance(self) -> NDArray[Any]:
        mean = self._sum / self.number
        return self._squares / self.number - np.outer(mean, mean)

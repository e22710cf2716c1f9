"""What sentence vectors for similarity need, next to the weights of a model."""

from pathlib import Path

from elmore.weights.hub import fetch
from elmore.weights.loading import ModelSource, load_model, open_source
from elmore.weights.similarity_file import (
    FILES,
    Similarity,
    has_similarity,
    read_similarity,
    remove_similarity,
    write_similarity,
)


def read_stored_similarity(source: ModelSource, *, model: str) -> Similarity | None:
    """Return what is stored with the model of this fingerprint; None if there is nothing."""
    if source.hub_id is not None:
        fetch(source.hub_id, FILES, **source.hub_options)
    with open_source(source) as opened:
        assert opened.path is not None
        folder = Path(opened.path)
        return read_similarity(folder, model=model) if has_similarity(folder) else None


def replace_similarity(
    folder: Path, similarity: Similarity | None, *, model: str | None = None
) -> None:
    """Write these files next to a model that was just written, or remove those of an earlier one.

    `model` is the fingerprint of the written model; by default, it is computed. Rounding the
    weights changes vectors too little to fit them again.
    """
    remove_similarity(folder)
    if similarity is not None:
        write_similarity(folder, similarity, model=model or load_model(folder).fingerprint())

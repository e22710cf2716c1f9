"""Facts about a model, for `elmore info`."""

from pathlib import Path

from elmore.weights.elmo_model import ElmoModel
from elmore.weights.model_card import describe_tokens, describe_training
from elmore.weights.model_folder import WEIGHTS, find_store
from elmore.weights.similarity_file import has_similarity
from elmore.weights.softmax_file import FILES, SETTINGS, describe_softmax, has_softmax
from elmore.weights.tf_checkpoint.prefix import find_prefix

Facts = dict[str, str | float | bool | None]


def describe_model(
    model: ElmoModel, *, folder: Path | None = None, checkpoint: str | None = None
) -> Facts:
    """Return a model's sizes, layers, memory and origin, and how its folder stores it.

    `checkpoint` is one that has the softmax of the model.
    """
    config = model.config
    num_weights = sum(weight.numel() for weight in model.bilm.parameters())
    num_bytes = sum(weight.numel() * weight.element_size() for weight in model.bilm.parameters())
    has_rest_state = bool(model.bilm.initial_cell.any() or model.bilm.initial_hidden.any())
    return {
        "name": config.about.name,
        "made_from": config.about.source,
        "trained_on": describe_training(config),
        "language": config.about.language,
        "license": config.about.license,
        "layers": config.num_mixed_layers,
        "vector_dim": config.vector_dim,
        "tokens": describe_tokens(config),
        "token_dim": config.token_dim,
        "token_projection": config.has_token_projection,
        "lstm_layers": config.lstm.num_layers,
        "lstm_cells": config.lstm.cell_dim,
        "lstm_output": config.lstm.output_dim,
        "lstm_projection": config.lstm.has_projection,
        "residuals": config.lstm.has_residuals,
        "cell_clip": config.lstm.cell_clip,
        "output_clip": config.lstm.output_clip,
        "initial_state": "rest state" if has_rest_state else "zeros",
        "parameters": num_weights,
        "memory_bytes": num_bytes,
        **_describe_files(model, folder, has_checkpoint=checkpoint is not None),
        "has_similarity": folder is not None and has_similarity(folder),
        "hash": model.fingerprint(),
        "notes": config.about.notes,
    }


def _describe_files(model: ElmoModel, folder: Path | None, *, has_checkpoint: bool) -> Facts:
    """Describe the files of a model folder; of other formats, only checkpoints have a softmax."""
    has_checkpoint = has_checkpoint or (folder is not None and find_prefix(folder) is not None)
    weights = folder / WEIGHTS if folder else None
    is_ours = weights is not None and weights.is_file()
    facts: Facts = {
        "stored": find_store(weights) if weights and is_ours else None,
        "stored_bytes": weights.stat().st_size if weights and is_ours else None,
        "has_softmax": bool(folder and is_ours and has_softmax(folder)),
    }
    if not folder or not facts["has_softmax"]:
        return {**facts, "has_softmax": has_checkpoint}
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        # Embedding never reads them, so those of a hub model may not have been downloaded.
        facts["softmax_missing"] = ", ".join(missing)
    if SETTINGS in missing:
        return facts
    softmax = describe_softmax(folder, dim=model.config.lstm.output_dim)
    return {
        **facts,
        "softmax_kind": softmax.kind,
        "softmax_words": softmax.num_words,
        "softmax_stored": softmax.store,
        "softmax_bytes": softmax.num_bytes,
        "softmax_fits": softmax.model == model.fingerprint(),
    }

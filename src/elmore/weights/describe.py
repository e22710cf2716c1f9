"""Facts about a model, for `elmore info`."""

from elmore.weights.elmo_model import ElmoModel
from elmore.weights.model_card import describe_tokens, describe_training


def describe_model(model: ElmoModel) -> dict[str, str | float | bool | None]:
    """Return sizes, layers, memory and origin of a model."""
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
        "hash": model.fingerprint(),
        "notes": config.about.notes,
    }

"""Convert between bilm-tf's options.json and our model config.

Running a model needs `lstm` and `char_cnn`; all other options are about training.
"""

from collections.abc import Mapping
from typing import Any

from elmore.config import About, CharacterConfig, LSTMConfig, ModelConfig, Units, WordConfig
from elmore.errors import ConfigError, ModelError
from elmore.text.characters import NUM_BYTE_UNITS
from elmore.wording import count

# Models are trained with 261 units and run with one more for "no token", which elmore doesn't need.
UNITS_WHEN_RUNNING = NUM_BYTE_UNITS + 1


def read_options(options: Mapping[str, Any], *, name: str, num_words: int | None) -> ModelConfig:
    """Return the config of a model; `num_words` is set if tokens come from an embedding file."""
    if options.get("bidirectional", True) is not True:
        raise ModelError("'bidirectional' is not true; elmore runs bidirectional models only")
    try:
        lstm = _read_lstm(_object(options, "lstm"))
        words = characters = None
        if num_words is not None:
            words = WordConfig(num_words=num_words, embedding_dim=lstm.output_dim)
        elif "char_cnn" in options:
            characters = _read_characters(_object(options, "char_cnn"))
        else:
            raise ModelError(
                "there is no 'char_cnn', so tokens have word vectors; give their file and "
                "vocabulary too (--token-embeddings, --vocabulary)"
            )
        token_dim = characters.output_dim if characters else lstm.output_dim
        return ModelConfig(
            lstm=lstm,
            characters=characters,
            words=words,
            has_token_projection=token_dim != lstm.output_dim,
            about=About(name=name, source="bilm-tf", trained_on=_describe_training(options)),
        )
    except ConfigError as error:
        raise ModelError(f"invalid options: {error!s:.300}") from error


def make_options(config: ModelConfig) -> dict[str, Any]:
    """Return the options that bilm-tf and AllenNLP need to run this model."""
    lstm = config.lstm
    options: dict[str, Any] = {
        "bidirectional": True,
        "lstm": {
            "cell_clip": lstm.cell_clip,
            "dim": lstm.cell_dim,
            "n_layers": lstm.num_layers,
            "proj_clip": lstm.output_clip,
            "projection_dim": lstm.output_dim,
            "use_skip_connections": lstm.has_residuals,
        },
    }
    characters = config.characters
    if characters is not None:
        options["char_cnn"] = {
            "activation": str(characters.activation),
            "embedding": {"dim": characters.embedding_dim},
            "filters": [list(pair) for pair in characters.filters],
            "max_characters_per_token": characters.max_chars,
            "n_characters": UNITS_WHEN_RUNNING,
            "n_highway": characters.num_highway_layers,
        }
    return options


def _read_lstm(lstm: Mapping[str, Any]) -> LSTMConfig:
    cell_dim, output_dim = _value(lstm, "dim"), _value(lstm, "projection_dim")
    if isinstance(cell_dim, int) and isinstance(output_dim, int) and output_dim > cell_dim:
        raise ModelError(
            f"'projection_dim' {output_dim} is larger than 'dim' {cell_dim}, which bilm-tf does "
            "not allow; give the options that belong to the weights"
        )
    has_residuals = lstm.get("use_skip_connections", False)
    if not isinstance(has_residuals, bool):
        raise ModelError(f"'use_skip_connections' is {has_residuals!r:.60}; give true or false")
    return LSTMConfig(
        num_layers=lstm.get("n_layers", 1),
        cell_dim=cell_dim,
        output_dim=output_dim,
        has_projection=output_dim != cell_dim,
        cell_clip=_read_clip(lstm.get("cell_clip")),
        output_clip=_read_clip(lstm.get("proj_clip")),
        has_residuals=has_residuals,
    )


def _read_characters(char_cnn: Mapping[str, Any]) -> CharacterConfig:
    num_units = char_cnn.get("n_characters", UNITS_WHEN_RUNNING)
    if num_units not in (NUM_BYTE_UNITS, UNITS_WHEN_RUNNING):
        raise ModelError(f"'n_characters' is {num_units!r:.60}, expected 261 or 262")
    return CharacterConfig(
        units=Units.BYTES,
        num_units=NUM_BYTE_UNITS,
        max_chars=_value(char_cnn, "max_characters_per_token"),
        splits_characters=True,
        embedding_dim=_value(_object(char_cnn, "embedding"), "dim"),
        filters=_value(char_cnn, "filters"),
        activation=_value(char_cnn, "activation"),
        num_highway_layers=0 if char_cnn.get("n_highway") is None else char_cnn["n_highway"],
    )


def _read_clip(clip: Any) -> Any:
    return None if clip == 0 else clip  # 0 means no clipping in AllenNLP too


def _object(options: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = _value(options, key)
    if not isinstance(value, Mapping):
        raise ModelError(f"{key!r} is {value!r:.60}; it must be an object with settings")
    return value


def _value(options: Mapping[str, Any], key: str) -> Any:
    if key not in options:
        raise ModelError(f"there is no {key!r}; give the options.json that bilm-tf wrote")
    return options[key]


def _describe_training(options: Mapping[str, Any]) -> str | None:
    tokens, epochs = options.get("n_train_tokens"), options.get("n_epochs")
    if not isinstance(tokens, int):
        return None
    return count(tokens, "token") + (
        f", {count(epochs, 'epoch')}" if isinstance(epochs, int) else ""
    )

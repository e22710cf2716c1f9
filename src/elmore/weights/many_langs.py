"""ELMoForManyLangs folders: config.json, char.dic, word.dic, token_embedder.pkl, encoder.pkl."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from elmore.config import About, CharacterConfig, LSTMConfig, ModelConfig, Units, WordConfig
from elmore.errors import ConfigError, ModelError
from elmore.files.untrusted import read_json
from elmore.weights.elmo_model import ElmoModel, assemble_model
from elmore.weights.entry_files import read_dic
from elmore.weights.many_langs_weights import (
    CHAR_TABLE,
    WORD_TABLE,
    count_layers,
    read_filters,
    table_shape,
    to_tensors,
)
from elmore.weights.torch_file import read_torch_file

# The values of all published models, for folders without an architecture file.
PUBLISHED_CLIP = 3.0
PUBLISHED_MAX_CHARS = 50


def read_many_langs(folder: Path) -> ElmoModel:
    """Load a folder with the layout of the published archives."""
    architecture = _read_architecture(folder)
    embedder = read_torch_file(folder / "token_embedder.pkl")
    encoder = read_torch_file(folder / "encoder.pkl")
    try:
        config = _read_config(folder, architecture, embedder, encoder)
        tensors = to_tensors(embedder, encoder, config)
    except (ConfigError, ModelError) as error:
        raise ModelError(f"{folder}: {error!s:.300}") from error
    characters, words = config.characters, config.words
    return assemble_model(
        config,
        tensors,
        characters=read_dic(folder / "char.dic", size=characters.num_units) if characters else (),
        words=read_dic(folder / "word.dic", size=words.num_words) if words else (),
    )


def _read_architecture(folder: Path) -> dict[str, Any]:
    """Find the architecture file by name: `config_path` is a path on its authors' machine."""
    settings = read_json(folder / "config.json")
    if "encoder" in settings:
        return settings
    name = str(settings.get("config_path", "")).replace("\\", "/").rsplit("/", 1)[-1]
    for directory in (folder, folder / "configs", folder.parent / "configs", folder.parent):
        for path in directory.glob("*.json"):
            if path.name == name and path != folder / "config.json":
                return read_json(path)
    for path in sorted(folder.glob("*.json")):
        if _is_architecture(path):
            return read_json(path)
    return {}


def _is_architecture(path: Path) -> bool:
    try:
        return "encoder" in read_json(path)
    except ModelError:
        return False  # some unrelated file


def _read_config(
    folder: Path,
    architecture: Mapping[str, Any],
    embedder: Mapping[str, Tensor],
    encoder: Mapping[str, Tensor],
) -> ModelConfig:
    """Take all sizes from the weights, and the rest from the architecture file."""
    token = _part(architecture, "token_embedder", kind="cnn")
    lstm = _part(architecture, "encoder", kind="elmo")
    max_chars = token.get("max_characters_per_token", PUBLISHED_MAX_CHARS)
    if not isinstance(max_chars, int) or max_chars < 3:
        raise ModelError(f"'max_characters_per_token' is {max_chars!r:.60}, expected 3 or more")
    characters = words = None
    if CHAR_TABLE in embedder:
        num_units, char_dim = table_shape(embedder, CHAR_TABLE)
        characters = CharacterConfig(
            units=Units.CHARACTERS,
            num_units=num_units,
            max_chars=max_chars,
            embedding_dim=char_dim,
            filters=read_filters(embedder),
            activation=token.get("activation", "relu"),
            num_highway_layers=count_layers(embedder, "highways._layers.{}.weight"),
        )
    if WORD_TABLE in embedder:
        num_words, word_dim = table_shape(embedder, WORD_TABLE)
        words = WordConfig(
            num_words=num_words,
            embedding_dim=word_dim,
            begin="<bos>",
            end="<eos>",
            unknown="<oov>",
            max_chars=max_chars - 2,
        )
    output_dim, cell_dim = table_shape(encoder, "forward_layer_0.state_projection.weight")
    return ModelConfig(
        lstm=LSTMConfig(
            num_layers=count_layers(encoder, "forward_layer_{}.input_linearity.weight"),
            cell_dim=cell_dim,
            output_dim=output_dim,
            cell_clip=_read_clip(lstm, "cell_clip"),
            output_clip=_read_clip(lstm, "proj_clip"),
            has_residuals=True,
            forget_bias=0.0,
        ),
        characters=characters,
        words=words,
        about=About(
            name=folder.resolve().name,
            source="ELMoForManyLangs",
            notes=None
            if architecture
            else "The folder had no architecture file; clipping and max_chars are those of all "
            "published models.",
        ),
    )


def _part(architecture: Mapping[str, Any], name: str, *, kind: str) -> Mapping[str, Any]:
    part = architecture.get(name, {})
    if not isinstance(part, Mapping):
        raise ModelError(f"{name!r} is {part!r:.60}; it must be an object with settings")
    if str(part.get("name", kind)).lower() != kind:
        raise ModelError(
            f"its {name} is {part['name']!r:.60}; elmore supports only {kind!r}, which all "
            "published models use"
        )
    return part


def _read_clip(lstm: Mapping[str, Any], name: str) -> Any:
    clip = lstm.get(name, PUBLISHED_CLIP)
    return None if clip == 0 else clip  # 0 means no clipping in ELMoForManyLangs

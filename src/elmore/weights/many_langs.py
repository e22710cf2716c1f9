"""ELMoForManyLangs folders: config.json, char.dic, word.dic, token_embedder.pkl, encoder.pkl."""

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmore.config import About, CharacterConfig, LSTMConfig, ModelConfig, Units, WordConfig
from elmore.errors import ConfigError, ModelError
from elmore.text.vocabulary import order_entries
from elmore.weights.elmo_model import ElmoModel, assemble_model
from elmore.weights.json_file import read_json

MAX_DIC_BYTES = 1 << 30
# What all published models have, for folders that came without their architecture file.
PUBLISHED_CLIP = 3.0
PUBLISHED_MAX_CHARS = 50
WORD_TABLE = "word_emb_layer.embedding.weight"
CHAR_TABLE = "char_emb_layer.embedding.weight"


def read_many_langs(folder: Path) -> ElmoModel:
    """Load a folder as the published archives have it."""
    embedder = _read_pickle(folder / "token_embedder.pkl")
    encoder = _read_pickle(folder / "encoder.pkl")
    architecture = _read_architecture(folder)
    try:
        config = _read_config(folder, architecture, embedder, encoder)
    except ConfigError as error:
        raise ModelError(f"{folder} does not describe a model: {error}") from error
    except (TypeError, AttributeError) as error:
        raise ModelError(f"{folder}: its settings are not of the usual kind ({error})") from error
    return assemble_model(
        config,
        _to_tensors(embedder, encoder, config),
        characters=order_entries(_read_dic(folder / "char.dic"), size=config.characters.num_units)
        if config.characters
        else (),
        words=order_entries(_read_dic(folder / "word.dic"), size=config.words.num_words)
        if config.words
        else (),
    )


def _read_architecture(folder: Path) -> dict[str, Any]:
    """Find the architecture file by its name: `config_path` is a path of its makers' machine."""
    settings = read_json(folder / "config.json")
    if "encoder" in settings:
        return settings
    name = str(settings.get("config_path", "")).replace("\\", "/").rsplit("/", 1)[-1]
    places = [folder, folder / "configs", folder.parent / "configs", folder.parent]
    for place in places if name else []:
        if (place / name).is_file():
            return read_json(place / name)
    others = [path for path in sorted(folder.glob("*.json")) if path.name != "config.json"]
    if len(others) == 1:
        return read_json(others[0])
    return {}


def _read_config(
    folder: Path,
    architecture: Mapping[str, Any],
    embedder: Mapping[str, Tensor],
    encoder: Mapping[str, Tensor],
) -> ModelConfig:
    """Take widths from the weights themselves; the architecture file tells what they cannot."""
    token = architecture.get("token_embedder", {})
    lstm = architecture.get("encoder", {})
    for part, name, wanted in ((token, "token_embedder", "cnn"), (lstm, "encoder", "elmo")):
        if str(part.get("name", wanted)).lower() != wanted:
            raise ModelError(
                f"{folder}: its {name} is {part.get('name')!r}; elmore runs {wanted!r}, as all "
                "published models have"
            )
    max_chars = token.get("max_characters_per_token", PUBLISHED_MAX_CHARS)
    characters = words = None
    if CHAR_TABLE in embedder:
        num_units, char_dim = _table_shape(embedder, CHAR_TABLE)
        characters = CharacterConfig(
            units=Units.CHARACTERS,
            num_units=num_units,
            max_chars=max_chars,
            embedding_dim=char_dim,
            filters=_read_filters(embedder),
            activation=token.get("activation", "relu"),
            num_highway_layers=_count(embedder, "highways._layers.{}.weight"),
        )
    if WORD_TABLE in embedder:
        num_words, word_dim = _table_shape(embedder, WORD_TABLE)
        words = WordConfig(
            num_words=num_words,
            embedding_dim=word_dim,
            begin="<bos>",
            end="<eos>",
            unknown="<oov>",
            max_chars=max_chars - 2,
        )
    output_dim, cell_dim = _table_shape(encoder, "forward_layer_0.state_projection.weight")
    return ModelConfig(
        lstm=LSTMConfig(
            num_layers=_count(encoder, "forward_layer_{}.input_linearity.weight"),
            cell_dim=cell_dim,
            output_dim=output_dim,
            cell_clip=lstm.get("cell_clip", PUBLISHED_CLIP) or None,
            output_clip=lstm.get("proj_clip", PUBLISHED_CLIP) or None,
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
            else "The folder had no architecture file; clips and max_chars are those of all "
            "published models.",
        ),
    )


def _read_filters(embedder: Mapping[str, Tensor]) -> tuple[tuple[int, int], ...]:
    shapes = [
        embedder[f"convolutions.{place}.weight"].shape
        for place in range(_count(embedder, "convolutions.{}.weight"))
    ]
    if any(len(shape) != 3 for shape in shapes):
        raise ModelError("token_embedder.pkl has convolutions that are not of three axes")
    return tuple((shape[2], shape[0]) for shape in shapes)


def _count(weights: Mapping[str, Tensor], pattern: str) -> int:
    """Count consecutive names from 0."""
    number = 0
    while pattern.format(number) in weights:
        number += 1
    return number


def _table_shape(weights: Mapping[str, Tensor], name: str) -> tuple[int, int]:
    if name not in weights or weights[name].dim() != 2:
        raise ModelError(f"the folder's weights lack the table {name!r}; get the model again")
    rows, columns = weights[name].shape
    return rows, columns


def _to_tensors(
    embedder: Mapping[str, Tensor], encoder: Mapping[str, Tensor], config: ModelConfig
) -> dict[str, Tensor]:
    """Rename the folder's weights; highways there gate the carried half, here the other."""
    tensors: dict[str, Tensor] = {}

    def take(name: str, source: Mapping[str, Tensor], theirs: str) -> None:
        if theirs not in source:
            raise ModelError(f"the folder's weights lack {theirs!r}; get the model again")
        tensors[name] = source[theirs]

    if config.words:
        take("token_encoder.words.weight", embedder, WORD_TABLE)
    if config.characters:
        take("token_encoder.characters.embedding.weight", embedder, CHAR_TABLE)
        for place in range(len(config.characters.filters)):
            filters, theirs = f"token_encoder.characters.filters.{place}", f"convolutions.{place}"
            # (filters, char dim, width) there; here a window's characters follow each other.
            weight = embedder[f"{theirs}.weight"].transpose(1, 2).flatten(1)
            tensors[f"{filters}.weight"] = weight.contiguous()
            take(f"{filters}.bias", embedder, f"{theirs}.bias")
        for depth in range(config.characters.num_highway_layers):
            for kind in ("weight", "bias"):
                take("both", embedder, f"highways._layers.{depth}.{kind}")
                transform, carry = tensors.pop("both").chunk(2)
                highway = f"token_encoder.highways.{depth}"
                tensors[f"{highway}.transform.{kind}"] = transform.contiguous()
                tensors[f"{highway}.gate.{kind}"] = -carry
    take("token_encoder.projection.weight", embedder, "projection.weight")
    take("token_encoder.projection.bias", embedder, "projection.bias")
    for ours, theirs in (("forward_lm", "forward_layer"), ("backward_lm", "backward_layer")):
        for layer in range(config.lstm.num_layers):
            root = f"{theirs}_{layer}"
            take(f"{ours}.{layer}.input_weight", encoder, f"{root}.input_linearity.weight")
            take(f"{ours}.{layer}.state_weight", encoder, f"{root}.state_linearity.weight")
            take(f"{ours}.{layer}.bias", encoder, f"{root}.state_linearity.bias")
            take(f"{ours}.{layer}.projection_weight", encoder, f"{root}.state_projection.weight")
    return tensors


def _read_pickle(path: Path) -> dict[str, Tensor]:
    """Read a torch file of named tensors; code in it is refused, not run."""
    if not path.is_file():
        raise ModelError(f"there is no {path}; the folder is not a whole ELMoForManyLangs model")
    _check_archive(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ModelError(f"{path} holds more than weights, or is damaged; get it again") from error
    except (
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        MemoryError,
        AssertionError,
        UnicodeDecodeError,
    ) as error:
        raise ModelError(f"{path} is not a whole torch file; get it again") from error
    if not isinstance(content, dict) or not all(
        isinstance(value, Tensor) for value in content.values()
    ):
        raise ModelError(f"{path} does not hold named weights; get it again")
    for name, value in content.items():
        if value.numel() * value.element_size() > path.stat().st_size:
            raise ModelError(f"{path}: {name!r} declares more numbers than the file holds")
        if not value.is_floating_point() or not bool(torch.isfinite(value).all()):
            raise ModelError(f"{path}: {name!r} has numbers that are not finite; get it again")
    return {str(name): value.to(torch.float32) for name, value in content.items()}


def _check_archive(path: Path) -> None:
    """Refuse an archive that would unpack to more than it is; torch stores without compressing."""
    if not zipfile.is_zipfile(path):
        return  # the older format of torch 0.4, which the published models have
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile as error:
        raise ModelError(f"{path} is a damaged archive; get it again") from error
    unpacked = sum(member.file_size for member in members)
    if unpacked > path.stat().st_size or any(member.compress_type for member in members):
        raise ModelError(f"{path} unpacks to {unpacked} bytes, more than it has; get it again")


def _read_dic(path: Path) -> dict[str, int]:
    """Read `entry, tab, id` lines as the library itself does.

    It strips each line, so an entry that is white space is lost; it takes that one for U+3000.
    """
    try:
        if path.stat().st_size > MAX_DIC_BYTES:
            raise ModelError(
                f"{path} has over {MAX_DIC_BYTES >> 20} MB; that is no list of entries"
            )
        lines = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 (byte {error.start}); get it again") from error
    ids: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        entry, place = ["\u3000", *fields][-2:]
        if len(fields) > 2 or not (place.isascii() and place.isdigit() and len(place) < 10):
            raise ModelError(
                f"{path}, line {number}: {line!r:.60} is not an entry, a tab and an id"
            )
        ids[entry] = int(place)
    return ids

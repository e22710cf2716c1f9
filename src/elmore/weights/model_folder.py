"""elmore's own model folder, in the layout of the Hugging Face hub.

config.json  model.safetensors  vocabulary.txt (words)  characters.txt  README.md (the card)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elmore.atomic_file import replace_file
from elmore.build import weight_shapes
from elmore.config import ModelConfig, Units
from elmore.errors import ConfigError, ModelError
from elmore.text.vocabulary import read_entries, write_entries
from elmore.weights.json_file import read_json, write_json
from elmore.weights.model_card import GENERATED, write_card

CONFIG, WEIGHTS, WORDS, CHARACTERS, CARD = (
    "config.json",
    "model.safetensors",
    "vocabulary.txt",
    "characters.txt",
    "README.md",
)


@dataclass(frozen=True, kw_only=True)
class SavedModel:
    """What a model folder holds."""

    config: ModelConfig
    tensors: dict[str, Tensor]
    characters: list[str]
    words: list[str]


def write_folder(
    folder: Path,
    *,
    config: ModelConfig,
    tensors: Mapping[str, Tensor],
    characters: Sequence[str],
    words: Sequence[str],
) -> None:
    """Write a model; each file is replaced whole, and a card written by hand is kept."""
    check_target(folder)
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replace_file(folder / WEIGHTS) as temporary:
        save_file(plain, temporary, metadata={"format": "pt"})
    for name, entries in ((WORDS, words), (CHARACTERS, characters)):
        if entries:
            with replace_file(folder / name) as temporary:
                write_entries(temporary, entries)
        else:
            (folder / name).unlink(missing_ok=True)
    with replace_file(folder / CONFIG) as temporary:
        write_json(temporary, config.to_json())
    card = folder / CARD
    if not card.exists() or GENERATED in card.read_text(encoding="utf-8", errors="replace"):
        num_weights = sum(tensor.numel() for tensor in plain.values())
        with replace_file(card) as temporary:
            temporary.write_text(write_card(config, num_weights=num_weights), encoding="utf-8")


def check_target(folder: Path) -> None:
    """Refuse to mix a model into a folder of other things."""
    if folder.exists() and not folder.is_dir():
        raise ModelError(f"{folder} is a file; give a folder for the model")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / WEIGHTS).exists():
        raise ModelError(f"{folder} holds other files; give an empty or a new folder for the model")


def read_folder(folder: Path) -> SavedModel:
    """Read a model; what the settings call for is compared with the weights before any is read."""
    settings = read_json(folder / CONFIG)
    try:
        config = ModelConfig.from_json(settings)
    except ConfigError as error:
        raise ModelError(f"{folder / CONFIG}: {error}") from error
    return SavedModel(
        config=config,
        tensors=_read_tensors(folder / WEIGHTS, weight_shapes(config)),
        characters=_read_list(
            folder / CHARACTERS,
            size=config.characters.num_units
            if config.characters and config.characters.units is Units.CHARACTERS
            else None,
        ),
        words=_read_list(folder / WORDS, size=config.words.num_words if config.words else None),
    )


def _read_list(path: Path, *, size: int | None) -> list[str]:
    """Read the list that goes with a table of `size` vectors, if there is such a table."""
    if size is None:
        return []
    entries = read_entries(path)
    if len(entries) != size:
        raise ModelError(f"{path} has {len(entries)} lines for {size} vectors; get it again")
    return entries


def _read_tensors(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    if not path.is_file():
        raise ModelError(f"there are no weights {path}; the folder is not a whole model")
    try:
        with safe_open(path, framework="pt") as file:
            names = set(file.keys())
            for name, shape in shapes.items():
                found = tuple(file.get_slice(name).get_shape()) if name in names else None
                if found != shape:
                    raise ModelError(
                        f"{path}: weight {name!r} has shape {found}, its settings call for {shape}"
                    )
            tensors = {name: file.get_tensor(name).to(torch.float32) for name in shapes}
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} is not whole safetensors ({error}); get it again") from error
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ModelError(f"{path}: weight {name!r} has numbers that are not finite")
    return tensors

"""A biLM with what it needs to read text; the thing that is loaded, saved and shared."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor, nn

from elmore.build import build_bilm, build_speller, initialize, weight_shapes
from elmore.config import About, ModelConfig
from elmore.errors import ModelError
from elmore.text.batches import Batch, make_batch
from elmore.weights.hub import find_folder
from elmore.weights.model_folder import read_folder, write_folder


class ElmoModel(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="elmore",
    tags=["elmo", "bilm", "contextual-word-embeddings"],
    paper_url="https://aclanthology.org/N18-1202/",
):
    """A biLM, its settings, and its lists of characters and words.

    `save_pretrained`, `from_pretrained` and `push_to_hub` are those of the Hugging Face hub.
    """

    def __init__(
        self, config: ModelConfig, *, characters: Sequence[str] = (), words: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.config = config
        self.characters = list(characters)
        self.words = list(words)
        self.speller = build_speller(config, characters=characters, words=words)
        self.bilm = build_bilm(config)

    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Make sentences of tokens ready for the biLM, where the biLM is."""
        return make_batch(sentences, self.speller).to(self.bilm.initial_hidden.device)

    def fingerprint(self) -> str:
        """Return a hash of all that a vector depends on, so that files can say what made them."""
        digest = hashlib.sha256()
        settings = replace(self.config, about=About()).to_json()
        for part in (settings, self.characters, self.words):
            digest.update(json.dumps(part, sort_keys=True).encode())
        for name, tensor in sorted(self.bilm.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    @classmethod
    def from_pretrained(  # the mixin's reads a local config unchecked, so it is replaced whole
        cls, pretrained_model_name_or_path: str | Path, **hub_options: Any
    ) -> Self:
        """Load a model folder, or a model of the hub (`owner/name`); a folder needs no network."""
        folder = find_folder(pretrained_model_name_or_path, **hub_options)
        saved = read_folder(folder)
        return assemble_model(
            saved.config, saved.tensors, characters=saved.characters, words=saved.words
        )

    def _save_pretrained(self, save_directory: Path) -> None:
        write_folder(
            save_directory,
            config=self.config,
            tensors=self.bilm.state_dict(),
            characters=self.characters,
            words=self.words,
        )


def assemble_model(
    config: ModelConfig,
    tensors: Mapping[str, Tensor],
    *,
    characters: Sequence[str] = (),
    words: Sequence[str] = (),
) -> Any:
    """Build a model around weights that are there already; the initial state may be left out."""
    shapes = weight_shapes(config)
    initial = {name: torch.zeros(shapes[name]) for name in ("initial_hidden", "initial_cell")}
    tensors = {**initial, **tensors}
    for name, shape in shapes.items():
        found = tuple(tensors[name].shape) if name in tensors else None
        if found != shape:
            raise ModelError(f"weight {name!r} has shape {found}, its settings call for {shape}")
    with torch.device("meta"):
        model = ElmoModel(config, characters=characters, words=words)
    model.bilm.load_state_dict(tensors, strict=True, assign=True)
    return model.eval()


def new_model(config: ModelConfig, *, seed: int, **lists: Sequence[str]) -> ElmoModel:
    """Build an untrained model; the same for one seed."""
    model = ElmoModel(config, **lists)
    initialize(model.bilm, seed=seed)
    return model.eval()

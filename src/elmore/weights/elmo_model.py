"""A biLM with everything it needs to read text; this is what is loaded, saved and shared."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor, nn

from elmore.build import (
    build_bilm,
    build_speller,
    initialize,
    weight_shapes,
    without_weights,
)
from elmore.config import About, ModelConfig, Units
from elmore.errors import ModelError
from elmore.text.batches import Batch, make_batch
from elmore.text.characters import NUM_BYTE_UNITS
from elmore.weights.hub import upload
from elmore.weights.model_folder import (
    CONFIG,
    WEIGHTS,
    find_folder,
    find_tensors,
    read_folder,
    write_folder,
)
from elmore.weights.similarity_file import FILES as SIMILARITY_FILES
from elmore.weights.softmax_file import FILES as SOFTMAX_FILES
from elmore.weights.unread_weights import Digest, Readers, UnreadWeights, add_weight, check_shape

INITIAL = ("initial_hidden", "initial_cell")


class ElmoModel(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="elmore",
    tags=["elmo", "bilm", "contextual-word-embeddings"],
    paper_url="https://aclanthology.org/N18-1202/",
):
    """A biLM, its config, and its lists of characters and words.

    `save_pretrained`, `from_pretrained` and `push_to_hub` work as in other Hugging Face models.
    """

    def __init__(
        self, config: ModelConfig, *, characters: Sequence[str] = (), words: Sequence[str] = ()
    ) -> None:
        super().__init__()
        _check_lists(config, characters=characters, words=words)
        self.config = config
        self.characters = list(characters)
        self.words = list(words)
        self.speller = build_speller(config, characters=characters, words=words)
        self.bilm = build_bilm(config)
        self._released: str | None = None  # the fingerprint of the weights, once released
        self._unread: UnreadWeights | None = None

    @property
    def is_released(self) -> bool:
        """Whether the weights have been released."""
        return self._released is not None

    @property
    def unread(self) -> UnreadWeights | None:
        """The weights, if they have not been read yet; the biLM has none until they are."""
        return self._unread

    def leave_unread(self, readers: Readers) -> None:
        """Read the weights later, each by its reader."""
        self._unread = UnreadWeights(
            readers, shapes=weight_shapes(self.bilm), digest=self._start_fingerprint()
        )

    def set_weights_aside(self) -> None:
        """Take the weights from the biLM as if they were unread, so that each can be freed."""
        weights = self.bilm.state_dict()
        self.bilm = self.bilm.to("meta")
        self.leave_unread({name: partial(weights.pop, name) for name in weights})

    def keep_weights(self) -> None:
        """Note that the biLM was given all weights that had been unread."""
        self._unread = None

    def release_weights(self) -> None:
        """Free the weights' memory, for use when only a packed copy of them is needed."""
        self._released = self.fingerprint()
        self._unread = None
        self.bilm = self.bilm.to("meta")

    def state_dict(self, *arguments: Any, **settings: Any) -> Any:
        """Return the weights, as torch does."""
        self.require_weights()
        return super().state_dict(*arguments, **settings)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self.require_weights()
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def require_weights(self) -> None:
        """Read the weights if they are unread; raise an error if they have been released."""
        if self._unread is not None:
            unread, self._unread = self._unread, None
            self.bilm.load_state_dict(unread.take_all(), strict=True, assign=True)
        if self.is_released:
            raise ModelError(
                "this model's weights were packed for embedding and the originals released; "
                "load it with load_model to save, convert or train it"
            )

    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Convert tokenized sentences to a batch on the biLM's device."""
        self.require_weights()
        return make_batch(sentences, self.speller).to(self.bilm.initial_hidden.device)

    def fingerprint(self) -> str:
        """Return a hash of everything vectors depend on; vector files record it."""
        if self._released is not None:
            return self._released
        if self._unread is not None:
            return self._unread.fingerprint()
        digest = self._start_fingerprint()
        for name, tensor in sorted(self.bilm.state_dict().items()):
            add_weight(digest, name, tensor)
        return digest.hexdigest()

    def _start_fingerprint(self) -> Digest:
        """Return the hash of all but the weights."""
        digest = hashlib.sha256()
        settings = replace(self.config, about=About()).to_json()
        for part in (settings, self.characters, self.words):
            digest.update(json.dumps(part, sort_keys=True).encode())
        return digest

    # The mixin's own methods don't check a local config, delete the config.json of the folder they
    # write to, and have no `store` option, so all three are overridden.

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **hub_options: Any) -> Self:
        """Load a model from a folder (without network access) or from the hub (`owner/name`)."""
        model = cls.open_folder(find_folder(pretrained_model_name_or_path, **hub_options))
        model.require_weights()
        return model

    @classmethod
    def open_folder(cls, folder: Path) -> Self:
        """Return the model of a folder with its weights unread; all else has been checked."""
        config, characters, words = read_folder(folder)
        with without_weights():
            model = cls(config, characters=characters, words=words)
        shapes = weight_shapes(model.bilm)
        model.leave_unread(find_tensors(folder / WEIGHTS, shapes, settings=CONFIG))
        return model.eval()

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        store: str = "f32",
        repo_id: str | None = None,
        push_to_hub: bool = False,
        **hub_options: Any,
    ) -> str | None:
        """Write a model folder; with `push_to_hub` also upload it and return the commit's URL.

        Weights are stored as `f32`, `f16` or `bf16`, and always loaded in single precision.
        """
        self.require_weights()
        folder = Path(save_directory)
        write_folder(
            folder,
            config=self.config,
            tensors=self.bilm.state_dict(),
            characters=self.characters,
            words=self.words,
            store=store,
        )
        if not push_to_hub:
            return None
        return self.push_to_hub(repo_id or folder.name, store=store, **hub_options)

    def push_to_hub(self, repo_id: str, *, store: str = "f32", **hub_options: Any) -> str:
        """Upload the biLM without its softmax; `LanguageModel.push_to_hub` uploads both.

        A softmax, or what `fit_similarity` computed, that is already in the repository belongs to
        other weights and is deleted.
        """
        return upload(
            lambda folder: self.save_pretrained(folder, store=store),
            repo_id,
            **{"delete_patterns": [*SOFTMAX_FILES, *SIMILARITY_FILES], **hub_options},
        )


def assemble_model(
    config: ModelConfig,
    tensors: Mapping[str, Tensor],
    *,
    characters: Sequence[str] = (),
    words: Sequence[str] = (),
) -> ElmoModel:
    """Build a model from its weights; `initial_hidden` and `initial_cell` default to zeros."""
    with without_weights():
        model = ElmoModel(config, characters=characters, words=words)
    shapes = weight_shapes(model.bilm)
    tensors = {
        **{name: torch.zeros(shapes[name], dtype=torch.float32) for name in INITIAL},
        **tensors,
    }
    for name, shape in shapes.items():
        check_shape(name, tensors.get(name), shape)
    model.bilm.load_state_dict(tensors, strict=True, assign=True)
    return model.eval()


def assemble_unread_model(
    config: ModelConfig, readers: Readers, *, words: Sequence[str] = ()
) -> ElmoModel:
    """Build a model whose weights are read later; sentences start from zeros."""
    with without_weights():
        model = ElmoModel(config, words=words)
    shapes = weight_shapes(model.bilm)
    model.leave_unread(
        {**{name: partial(torch.zeros, shapes[name]) for name in INITIAL}, **readers}
    )
    return model.eval()


def new_model(config: ModelConfig, *, seed: int, **lists: Sequence[str]) -> ElmoModel:
    """Build an untrained model; the same seed gives the same weights."""
    model = ElmoModel(config, **lists)
    initialize(model.bilm, seed=seed)
    return model.eval()


def _check_lists(config: ModelConfig, *, characters: Sequence[str], words: Sequence[str]) -> None:
    """Check that every entry of the lists has a vector."""
    settings = config.characters
    if settings and settings.units is Units.BYTES and settings.num_units != NUM_BYTE_UNITS:
        raise ModelError(
            f"a byte model has {NUM_BYTE_UNITS} units, but its config says {settings.num_units}; "
            "correct num_units"
        )
    num_characters = settings.num_units if settings and settings.units is Units.CHARACTERS else 0
    num_words = config.words.num_words if config.words else 0
    for name, entries, number in (
        ("characters", characters, num_characters),
        ("words", words, num_words),
    ):
        if len(entries) != number:
            raise ModelError(
                f"the list of {name} has {len(entries)} entries for {number} vectors; "
                "give the list that belongs to the model"
            )

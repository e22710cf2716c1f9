"""Where the model of an embedder came from, and what is stored there next to its weights."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from elmore.config import Precision
from elmore.embed.layer_choice import LayerChoice
from elmore.errors import ModelError
from elmore.settings import read_path
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.hub import fetch
from elmore.weights.loading import ModelSource
from elmore.weights.similarity_file import Similarity, check_width
from elmore.weights.softmax_file import has_softmax
from elmore.weights.stored_similarity import read_stored_similarity, replace_similarity

if TYPE_CHECKING:
    from elmore.lm.language_model import LanguageModel


class ModelOrigin:
    """A model and its source, from which released weights and other files are read again.

    `source` has the fingerprint of the weights as loaded; it is None for a model in memory.
    """

    def __init__(self, model: ElmoModel, source: ModelSource | None = None) -> None:
        self.model = model
        self.source = source
        self.similarity: Similarity | None = None  # that was read
        self._language_model: LanguageModel | None = None

    def with_model(self, model: ElmoModel) -> "ModelOrigin":
        """Return the origin of the same model on another device."""
        moved = ModelOrigin(model, self.source)
        moved.similarity = self.similarity
        return moved

    @property
    def is_changed(self) -> bool:
        """Whether the model's weights were changed after loading."""
        return self.source is not None and self.source.fingerprint != self.model.fingerprint()

    @property
    def is_shipped(self) -> bool:
        """Whether this is the model that comes with elmore."""
        return self.source is not None and self.source.is_default and not self.is_changed

    def find_folder(self) -> Path | None:
        """Return the model folder of elmore that it was loaded from; None for any other model."""
        if self.source is None or self.source.is_default or self.source.hub_id is not None:
            return None
        folder = self.source.find()
        return folder if (folder / "model.safetensors").exists() else None

    def find_file(self, name: str) -> Path | None:
        """Return a file that is stored with the model, if there is one of this name."""
        if self.source is None:
            return None
        if self.source.hub_id is not None:
            fetch(self.source.hub_id, [name], **self.source.hub_options)
        path = self.source.find() / name
        return path if path.is_file() else None

    def find_path(self) -> str:
        """Return the path of the model's files, for functions that read them again."""
        remedy = "save it to a folder with save(folder), and give that folder"
        if self.source is None:
            raise ModelError(f"the model of this embedder is not in a file; {remedy}")
        if self.is_changed:
            raise ModelError(
                f"the model of this embedder was changed after it was loaded from {self.source}; "
                f"{remedy}"
            )
        return self.source.find_complete(remedy=remedy)

    def load_model(self) -> ElmoModel:
        """Return the model with its weights, loading them again if they were released."""
        if self.model.is_released and self.source is not None:
            return self.source.read_again()
        self.model.require_weights()
        return self.model

    @property
    def has_lm_head(self) -> bool:
        """Whether an LM head is stored with the model."""
        return self.source is not None and has_softmax(self.source.find())

    def load_language_model(self, device: torch.device) -> "LanguageModel":
        """Return the model with its LM head, which is loaded on first use."""
        if self._language_model is None:
            from elmore.lm.language_model import read_language_model  # noqa: PLC0415  often not needed

            if self.source is None:
                raise ModelError(
                    "a model in memory has no LM head; load one from a folder with elmore.load"
                )
            loaded = read_language_model(self.source)
            self.source.check_same(loaded.elmo)
            if not self.model.is_released:
                loaded = replace(loaded, elmo=self.model)
            self._language_model = loaded.to(device)
        return self._language_model

    def read_similarity(self) -> Similarity | None:
        """Return what `fit_similarity` has stored with the model, which is read on first use."""
        if self.similarity is None and self.source is not None:
            bilm = self.model.bilm
            found = read_stored_similarity(self.source, model=self.model.fingerprint())
            if found is not None:
                num_kept = LayerChoice(found.layers, num_layers=bilm.num_layers).num_kept or 1
                check_width(found, num_numbers=num_kept * bilm.output_dim, source=str(self.source))
            self.similarity = found
        return self.similarity

    def save(
        self,
        folder: str | Path,
        *,
        similarity: Similarity | None,
        device: torch.device,
        store: Precision | str,
        store_softmax: Precision | str | None,
    ) -> None:
        """Write a model folder, with the LM head if there is one.

        Without `similarity`, the one that is stored with the model is written.
        """
        from elmore.lm.language_model import NoSoftmaxError  # noqa: PLC0415

        folder = read_path("folder", folder)
        if similarity is None and not self.is_changed:
            similarity = self.read_similarity()
        try:
            if self.source is None:
                self.model.save_pretrained(folder, store=store)
            else:
                self.load_language_model(device).save(
                    folder, store=store, store_softmax=store_softmax
                )
        except NoSoftmaxError:
            self.load_model().save_pretrained(folder, store=store)
        replace_similarity(folder, similarity)

"""ELMo vectors as token embeddings of Flair."""

from pathlib import Path
from typing import Any, Self

import torch

from elmore import ElmoreError, require_extra
from elmore.integrations.saved_model import SavedModel

require_extra("flair", needed_for="elmore.integrations.flair")

import flair  # noqa: E402
from flair.data import Sentence  # noqa: E402
from flair.embeddings.base import TokenEmbeddings, register_embeddings  # noqa: E402


@register_embeddings
class ElmoreEmbeddings(TokenEmbeddings):  # type: ignore[misc]
    """What Flair's own `ELMoEmbeddings` was: the same arguments, without AllenNLP.

    `model` is what `elmore.load` accepts; so is `weight_file`, with its `options_file`. Without
    them, it is the English model that comes with elmore. `embedding_mode` is `all` (layers are
    concatenated), `top`, `average` or a layer number. The biLM is frozen.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        embedding_mode: str | int = "all",
        *,
        name: str | None = None,
        files: dict[str, bytes] | None = None,
    ) -> None:
        if model is not None and weight_file is not None:
            raise ElmoreError(
                f"got both model={str(model)!r:.60} and weight_file={str(weight_file)!r:.60}; give "
                "one of them"
            )
        super().__init__()
        source = model if weight_file is None else weight_file
        self.name = name or f"elmore-{'english' if source is None else source}-{embedding_mode}"
        self.static_embeddings = True
        self.embedding_mode = embedding_mode
        self._model = SavedModel(source, options=options_file, device=str(flair.device))
        if files is not None:
            self._model.from_files(files)
        num_layers = self._model.embedder.choose_layers(embedding_mode).num_kept
        self._length = (num_layers or 1) * self._model.embedder.vector_dim

    @property
    def embedding_length(self) -> int:
        """The width of a token's vector."""
        return self._length

    def _add_embeddings_internal(self, sentences: list[Sentence]) -> None:
        tokens = [[token.text for token in sentence] for sentence in sentences]
        vectors = self._model.embedder.embed(tokens, layers=self.embedding_mode, output="torch")
        for sentence, found in zip(sentences, vectors, strict=True):
            # (T, D), or (T, L * D) if several layers are concatenated
            rows = found if found.dim() == 2 else torch.cat(found.unbind(), dim=-1)
            for token, row in zip(sentence, rows.to(flair.device), strict=True):
                token.set_embedding(self.name, row)

    def to_params(self) -> dict[str, Any]:
        """Return what a saved tagger holds: the settings, and the model's files."""
        return {
            "embedding_mode": self.embedding_mode,
            "name": self.name,
            "files": self._model.to_files(),
        }

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Self:
        """Restore what `to_params` returned."""
        return cls(**params)

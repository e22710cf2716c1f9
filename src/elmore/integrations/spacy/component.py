"""The component `elmore`: contextual vectors for docs, spans and tokens."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Optional, Self, Union

import srsly
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from elmore import ElmoreError, Embedder
from elmore.integrations.saved_model import SavedModel
from elmore.integrations.spacy.docs import embed_docs
from elmore.integrations.spacy.hooks import add_hooks

DEFAULTS = {
    "model": None,
    "layers": "average",
    "keep_layers": True,
    "precision": "f32",
    "device": "cpu",
    "max_sentence_tokens": 10_000,
}

if not Doc.has_extension("elmore"):
    Doc.set_extension("elmore", default=None)


class DocEmbedder:
    """Sets `doc.tensor`, `doc._.elmore` and the vectors of docs, spans and tokens."""

    def __init__(self, model: SavedModel, *, layers: str | int, keep_layers: bool) -> None:
        self._model = model
        self.layers = layers
        self.keep_layers = keep_layers

    @property
    def embedder(self) -> Embedder:
        """The embedder, loaded on first use."""
        return self._model.embedder

    def __call__(self, doc: Doc) -> Doc:
        """Embed one doc."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Embed a stream of docs in batches."""
        for docs in minibatch(stream, batch_size):  # type: ignore[no-untyped-call]
            self._annotate(docs)
            yield from docs

    def _annotate(self, docs: Sequence[Doc]) -> None:
        embedder = self.embedder
        choice = embedder.choose_layers(self.layers)
        if choice.num_kept is not None:
            raise ElmoreError(
                f"layers is {self.layers!r:.60}, but a token of spaCy has one vector; choose one "
                "layer, 'top' or 'average' (all layers are in doc._.elmore)"
            )
        found = embed_docs(embedder, docs, layers="all" if self.keep_layers else self.layers)
        for doc, vectors in zip(docs, found, strict=True):
            chosen: Any = vectors  # float32; spaCy declares float64
            if self.keep_layers:
                doc._.elmore = vectors
                chosen = choice(torch.from_numpy(vectors)).numpy()
            doc.tensor = chosen
            add_hooks(doc)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the model as bytes; the settings are in the config of the pipeline."""
        return srsly.msgpack_dumps({} if "model" in exclude else self._model.to_files())

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Load what `to_bytes` returned."""
        if "model" not in exclude:
            self._model.from_files(srsly.msgpack_loads(data))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model into a folder."""
        if "model" in exclude:
            return
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self._model.to_files().items():
            (folder / name).write_bytes(data)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Load what `to_disk` wrote."""
        if "model" not in exclude:
            files = {file.name: file.read_bytes() for file in Path(path).iterdir()}
            self._model.from_files(files)
        return self


@Language.factory(
    "elmore",
    assigns=["doc.tensor", "doc._.elmore", "token.vector"],
    default_config=DEFAULTS,
)
def make_component(
    nlp: Language,  # noqa: ARG001  spaCy passes it
    name: str,  # noqa: ARG001
    model: Optional[str],  # noqa: UP045  spaCy reads the annotations
    layers: Union[int, str],  # noqa: UP007
    keep_layers: bool,
    precision: str,
    device: str,
    max_sentence_tokens: int,
) -> Any:
    """Make the component; its model is loaded when first used."""
    source = SavedModel(
        model, device=device, precision=precision, max_sentence_tokens=max_sentence_tokens
    )
    return DocEmbedder(source, layers=layers, keep_layers=keep_layers)

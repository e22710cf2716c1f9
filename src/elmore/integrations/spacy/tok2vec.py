"""`elmore.Tok2Vec.v1`: a frozen biLM and a trained mix of its layers, for components of spaCy.

Shapes: L layers, T tokens of a doc, D both directions of one layer, W the width if one is given.
"""

from collections.abc import Callable
from typing import Any, List, Optional  # noqa: UP035  spaCy reads the annotations

import srsly
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Maxout, Model, chain, concatenate, with_array
from thinc.model import deserialize_attr, serialize_attr
from thinc.types import Floats2d

from elmore import ElmoreError
from elmore.integrations.saved_model import SavedModel
from elmore.integrations.spacy.layer_store import LayerStore

BYTES_PER_MB = 1_000_000
MAXOUT_PIECES = 3


@registry.architectures("elmore.Tok2Vec.v1")  # type: ignore[untyped-decorator]
def make_tok2vec(
    model: Optional[str] = None,  # noqa: UP045
    width: Optional[int] = None,  # noqa: UP045
    precision: str = "f32",
    device: str = "cpu",
    max_sentence_tokens: int = 10_000,
    cache_mb: int = 1000,
    embed: Optional[Model[List[Doc], List[Floats2d]]] = None,  # noqa: UP006, UP045
) -> Model[List[Doc], List[Floats2d]]:  # noqa: UP006
    """Return (T, D) per doc, or (T, W) after a trained layer if `width` is given.

    That layer is spaCy's own for embeddings, maxout with layer norm. It also reads the vectors of
    `embed`, if given, such as spaCy's hash embeddings: `[x; ELMo]`, as in the paper.

    `cache_mb` bounds the layers kept in memory while training.
    """
    source = SavedModel(
        model, device=device, precision=precision, max_sentence_tokens=max_sentence_tokens
    )
    mix: Model[Any, Any] = Model(
        "elmore_mix",
        mix_forward,
        init=_initialize,
        dims={"nO": None},
        params={"weights": None, "scale": None},
        attrs={"layers": LayerStore(source, max_bytes=cache_mb * BYTES_PER_MB)},
    )
    if width is None:
        if embed is not None:
            raise ElmoreError("elmore.Tok2Vec.v1 has embed but no width; set the width to return")
        return mix
    joined: Model[Any, Any] = mix if embed is None else concatenate(mix, embed)
    projected: Model[Any, Any] = chain(
        joined, with_array(Maxout(nO=width, nP=MAXOUT_PIECES, dropout=0.0, normalize=True))
    )
    projected.set_dim("nO", width)
    return projected


def _initialize(model: Model[Any, Any], X: Any = None, Y: Any = None) -> None:  # noqa: N803, ARG001
    """Start from the mean of the layers, as ELMo does."""
    store: LayerStore = model.attrs["layers"]
    store.is_training = True
    embedder = store.model.embedder
    model.set_dim("nO", embedder.vector_dim)
    model.set_param("weights", model.ops.alloc1f(embedder.num_layers))
    model.set_param("scale", model.ops.alloc1f(1) + 1)


def mix_forward(
    model: Model[Any, Any],
    docs: list[Doc],
    is_train: bool,  # noqa: ARG001  thinc passes it
) -> tuple[list[Any], Callable[[list[Any]], list[Doc]]]:
    """Compute `scale * sum(softmax(weights)[k] * layers[k])` for each doc."""
    ops = model.ops
    weights, scale = model.get_param("weights"), model.get_param("scale")
    exponents = ops.xp.exp(weights - weights.max())
    shares = exponents / exponents.sum()
    layers = [ops.asarray(array) for array in model.attrs["layers"].find(docs)]
    mixed = [ops.xp.tensordot(shares, array, axes=1) for array in layers]

    def backprop(gradients: list[Any]) -> list[Doc]:
        by_share = ops.alloc1f(len(shares))
        by_scale = ops.alloc1f(1)
        for gradient, array, vectors in zip(gradients, layers, mixed, strict=True):
            by_share += scale[0] * ops.xp.tensordot(array, gradient, axes=2)
            by_scale += (vectors * gradient).sum()
        model.inc_grad("weights", shares * (by_share - (shares * by_share).sum()))
        model.inc_grad("scale", by_scale)
        return []

    return [scale[0] * vectors for vectors in mixed], backprop


@serialize_attr.register(LayerStore)
def _write_store(_: Any, store: LayerStore, name: str, model: Model[Any, Any]) -> bytes:  # noqa: ARG001
    return srsly.msgpack_dumps(store.model.to_files())


@deserialize_attr.register(LayerStore)
def _read_store(store: LayerStore, data: bytes, name: str, model: Model[Any, Any]) -> LayerStore:  # noqa: ARG001
    store.model.from_files(srsly.msgpack_loads(data))
    return store

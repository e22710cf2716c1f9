"""Similar uses of a word, with the vectors of an index instead of a model."""

import numpy as np
import torch

from elmore.embed.embedder import Embedder
from elmore.embed.layer_choice import AVERAGE, TOP, LayerChoice, Layers
from elmore.errors import ConfigError
from elmore.explore.neighbors import (
    MAX_CONTEXTS,
    Array,
    Context,
    Neighbor,
    find_query,
    pair_contexts,
    rank_contexts,
    refuse_several_layers,
)
from elmore.explore.use_index import UseIndex
from elmore.explore.uses import to_unit_length


def find_indexed_neighbors(
    index: UseIndex,
    word: str,
    *,
    query: list[str] | None = None,
    embedder: Embedder | None = None,
    top: int = 10,
    layers: Layers = TOP,
) -> list[Neighbor]:
    """Return what `nearest_pairs` returns, or with a sentence `query` what `nearest_to` returns.

    The results are the same up to the rounding of f16. An embedder is only needed for `query`.
    """
    if query is None:
        return pair_contexts(*collect_indexed_contexts(index, word, layers=layers), top=top)
    assert embedder is not None
    index.check_model(embedder)
    use, vector = find_query(embedder, word, query, layers=layers)
    contexts, vectors = collect_indexed_contexts(index, word, layers=layers)
    return rank_contexts(contexts, vectors, use=use, vector=vector, top=top)


def collect_indexed_contexts(
    index: UseIndex, word: str, *, layers: Layers = TOP
) -> tuple[list[Context], Array]:
    """Return what `collect_contexts` returns, up to the rounding of f16."""
    choice = LayerChoice(layers, num_layers=index.num_layers)
    refuse_several_layers(choice)
    if choice.mix is not None and choice.mix.normalizes:
        raise ConfigError(
            "this mix normalizes layers over whole sentences, which is impossible with an index; "
            "give a mix without normalization, or the text instead of the index"
        )
    uses = index.uses(word, limit=None).uses[:MAX_CONTEXTS]
    contexts = [
        Context(sentence=use.sentence, position=use.position, tokens=use.tokens) for use in uses
    ]
    if choice.number is not None or choice.name == TOP:
        number = index.num_layers - 1 if choice.number is None else choice.number
        return contexts, to_unit_length(index.vectors(uses, number))
    if len(index.layers) < index.num_layers:
        missing = [n for n in range(index.num_layers) if n not in index.layers]
        what = "the average" if choice.name == AVERAGE else "a mix"
        raise ConfigError(
            f"{what} needs all layers, but {index.folder} lacks {', '.join(map(str, missing))}; "
            "choose one layer, or build the index with all layers"
        )
    stacked = np.stack([index.vectors(uses, layer) for layer in index.layers])
    return contexts, to_unit_length(choice(torch.from_numpy(stacked)).numpy())

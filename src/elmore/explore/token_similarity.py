"""Compare the tokens of one sentence with each other, layer by layer.

Shapes: L layers, T tokens, D both directions of one layer.
"""

from dataclasses import dataclass

import numpy as np

from elmore.arguments import explain_calls
from elmore.embed.embedder import Embedder, Sentence
from elmore.explore.uses import to_unit_length


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSimilarity:
    """The cosines of all pairs of tokens, in each layer."""

    tokens: list[str]
    cosines: list[list[list[float]]]  # (L, T, T)
    products: list[list[list[list[float]]]]  # (L, L, T, T)
    """Inner products of token i in layer l and token j in layer m. With weights w, the product of
    two mixed vectors is the sum of `w[l] * w[m] * products[l][m][i][j]`, so that cosines of any
    mix follow without the vectors."""


@explain_calls()
def token_similarity(embedder: Embedder, sentence: Sentence) -> TokenSimilarity:
    """Return how similar the tokens of a sentence are to each other, in each layer.

    ```python
    found = elmore.token_similarity(embedder, "A bank is not a bank.")
    print(found.cosines[2][1][5])  # the two uses of "bank", in layer 2
    ```
    """
    (tokens,) = embedder.tokenize([sentence])  # type: ignore[list-item]
    vectors = embedder.embed([tokens], layers="all")[0]  # (L, T, D)
    units = to_unit_length(vectors)
    return TokenSimilarity(
        tokens=tokens,
        cosines=np.einsum("lid,ljd->lij", units, units).tolist(),
        products=np.einsum("lid,mjd->lmij", vectors, vectors).tolist(),
    )

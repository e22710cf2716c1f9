"""ELMo vectors as transformers of scikit-learn: one row per text, or one row per token.

Shapes: D numbers per vector; if several layers are chosen, they are concatenated.
"""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from elmore import ElmoreError, Embedder, load, require_extra

require_extra("sklearn", needed_for="elmore.integrations.sklearn")

from sklearn import get_config  # noqa: E402
from sklearn.base import (  # noqa: E402
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted  # noqa: E402

Array = NDArray[np.float32]


class _Vectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both transformers share: the settings, and an embedder once fitted."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803, ARG002  scikit-learn's names
        """Load the model; nothing is learned from the texts."""
        _read_texts(X)
        if isinstance(self.model, Embedder):
            self.embedder_ = self.model
        else:
            self.embedder_ = load(
                self.model,
                state=self.state,
                language=self.language,
                precision=self.precision,
                device=self.device,
            )
        self._pool([])  # report a wrong setting now, not in transform
        return self

    @property
    def _n_features_out(self) -> int:
        return self._pool([]).shape[1]

    def _pool(self, texts: list[Sequence[str]]) -> Array:
        """Return one vector per text."""
        pool = getattr(self, "pool", "mean")
        # "similarity" has layers of its own; the default stands for them.
        has_own = pool == "similarity" and self.layers == "average"
        layers = None if has_own else self.layers
        return self.embedder_.sentence_vectors(texts, pool=pool, layers=layers)

    @property
    def _num_layers(self) -> int | None:
        """The number of layers that are concatenated; None for one vector per token."""
        return self.embedder_.choose_layers(self.layers).num_kept

    def _tokenize(self, texts: Any) -> list[Sequence[str]]:
        check_is_fitted(self)
        embedder = self.embedder_
        embedder.reset_state()  # so that the same texts give the same vectors again
        return [
            embedder.tokenize(text) if isinstance(text, str) else text
            for text in _read_texts(texts)
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        tags.no_validation = True
        return tags


class ElmoVectorizer(_Vectorizer):
    """One row per text: the mean, maximum or last states over its tokens, or for similarity.

    `model` is what `elmore.load` accepts or returns. An embedder brings its own state policy,
    language, precision and device. `layers` is that of `Embedder.embed`; several layers are
    concatenated. X is a list, an array or a column of strings or token lists.
    """

    def __init__(
        self,
        model: str | Path | Embedder | None = None,
        *,
        pool: str = "mean",
        layers: Any = "average",
        state: str = "reset",
        language: str = "en",
        precision: str = "f32",
        device: str = "cpu",
    ) -> None:
        self.model = model
        self.pool = pool
        self.layers = layers
        self.state = state
        self.language = language
        self.precision = precision
        self.device = device

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return (texts, D); a text without tokens gets zeros."""
        return self._pool(self._tokenize(X))


class ElmoTokenVectorizer(_Vectorizer):
    """One row per token; `groups` says which text each row belongs to.

    The settings are those of `ElmoVectorizer`, without `pool`. There are more rows than texts, so
    give labels per token to the estimator that follows, and use `groups` in cross-validation.
    """

    def __init__(
        self,
        model: str | Path | Embedder | None = None,
        *,
        layers: Any = "average",
        state: str = "reset",
        language: str = "en",
        precision: str = "f32",
        device: str = "cpu",
    ) -> None:
        self.model = model
        self.layers = layers
        self.state = state
        self.language = language
        self.precision = precision
        self.device = device

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return (tokens of all texts, D)."""
        tokens = self._tokenize(X)
        vectors = self.embedder_.embed(tokens, layers=self.layers)
        if self._num_layers is not None:
            vectors = [np.concatenate(list(layers), axis=-1) for layers in vectors]
        empty = np.empty((0, self._n_features_out), dtype=np.float32)
        rows = np.concatenate([empty, *vectors])
        return self._label_rows(rows, X, tokens)

    def groups(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """Return the number of each token's text, for `GroupKFold` and the like."""
        lengths = [len(tokens) for tokens in self._tokenize(X)]
        return np.repeat(np.arange(len(lengths)), lengths)

    def tokens(self, X: Any) -> list[str]:  # noqa: N803
        """Return the tokens of all texts, one per row."""
        return list(chain.from_iterable(self._tokenize(X)))

    def _label_rows(self, rows: Array, X: Any, tokens: list[Sequence[str]]) -> Any:  # noqa: N803
        """Give each row the index of its text, if both are pandas'.

        scikit-learn would give the rows the index of X, which is shorter.
        """
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform")
        if (chosen or get_config()["transform_output"]) != "pandas" or not hasattr(X, "iloc"):
            return rows
        import pandas as pd  # noqa: PLC0415  needed only here

        return pd.DataFrame(rows, index=X.index.repeat([len(sentence) for sentence in tokens]))


def _read_texts(texts: Any) -> Sequence[Any]:
    """Return the texts of a list, or of an array or a table with a single column."""
    columns = getattr(texts, "shape", (0,))[1:]
    if len(columns) > 1 or columns[:1] > (1,):
        raise ElmoreError(
            f"got an array of shape {tuple(texts.shape)} where texts were expected; give one "
            "column of strings, such as frame['text']"
        )
    if columns:  # ColumnTransformer passes a table if its column is given as a list
        texts = texts.to_numpy() if hasattr(texts, "to_numpy") else texts
        texts = texts[:, 0]
    if isinstance(texts, str) or not hasattr(texts, "__len__"):
        raise ElmoreError(f"got {texts!r:.60} where texts were expected; give a list of strings")
    return texts.tolist() if hasattr(texts, "tolist") else list(texts)

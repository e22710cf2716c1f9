"""A callable that adds vectors to batches of a table, for Ray, Spark, datasets, Dask and others."""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmore.arguments import explain_calls
from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder, load
from elmore.embed.layer_choice import AVERAGE, Layers
from elmore.embed.other_names import OTHER_ARGUMENTS
from elmore.embed.pooling import Pool
from elmore.errors import ConfigError, DataError, MissingExtraError, ModelError
from elmore.settings import check_range, read_choice

MAX_LOADED = 2

# Engines unpickle a callable for every task. The models of a process are shared by their settings.
_loaded: "OrderedDict[str, Embedder]" = OrderedDict()


class ArrowEmbedder:
    """Adds vectors of a text column to batches of a table.

    A batch is an Arrow table or record batch, a pandas frame, or a dict of lists or arrays, and so
    is the result. With `pool` ("mean", "max" or "last"), the column `output` has one vector per
    row. With `pool=None`, it has one vector per token, and the column `tokens` has the tokens.
    `tokenized` says that the column holds lists of tokens. Several `layers` are concatenated. A
    missing text gives a missing vector.

    It is pickled as its settings, with the fingerprint of the model, and the model is loaded when
    the first batch arrives, once per process. `threads` is torch's number of threads there. With
    `fixed_size=False`, Arrow columns are plain lists, which Spark needs.

    >>> import elmore
    >>> embed = elmore.ArrowEmbedder(column="text", pool="mean")
    >>> embed({"text": ["The bank.", "A river."]})["vector"].shape
    (2, 512)
    """

    @explain_calls(OTHER_ARGUMENTS)
    def __init__(
        self,
        model: Embedder | str | Path | None = None,
        *,
        column: str = "text",
        output: str = "vector",
        tokenized: bool = False,
        pool: Pool | str | None = Pool.MEAN,
        layers: Layers = AVERAGE,
        threads: int | None = None,
        fixed_size: bool = True,
        **settings: Any,
    ) -> None:
        if isinstance(model, Embedder) and settings:
            raise ConfigError(
                f"the model is loaded already, so {next(iter(settings))} cannot be set; give it to "
                "elmore.load"
            )
        if isinstance(model, Embedder) and model.state is not StatePolicy.RESET:
            raise ConfigError(
                f"rows of a table are independent, but the state policy of this model is "
                f"{model.state}; load it with state='reset'"
            )
        if "state" in settings and settings["state"] != StatePolicy.RESET:
            raise ConfigError("rows of a table are independent; leave out state")
        if threads is not None:
            check_range("threads", threads, 1, 1 << 16)
        self.column = column
        self.output = output
        self.tokenized = tokenized
        self.pool = None if pool is None else _read_pool(pool)
        self.layers = layers
        self.threads = threads
        self.fixed_size = fixed_size
        self._model = model if isinstance(model, Embedder) or model is None else str(model)
        self._settings = settings
        self._fingerprint: str | None = None
        self._embedder: Embedder | None = model if isinstance(model, Embedder) else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings, and the fingerprint of the model; the same ones for the same model.

        Hugging Face datasets hashes this to find cached results.
        """
        fingerprint = self.embedder.model.fingerprint()
        return {**self.__dict__, "_fingerprint": fingerprint, "_embedder": None}

    @property
    def embedder(self) -> Embedder:
        """The embedder, loaded when it is first needed."""
        if self._embedder is None:
            self._embedder = self._load()
        return self._embedder

    def __call__(self, batch: Any) -> Any:
        """Return the batch with vectors."""
        kind = type(batch).__name__
        module = type(batch).__module__
        if isinstance(batch, Mapping):
            return self._embed_dict(batch)
        if module.startswith("pyarrow"):
            return self._embed_arrow(batch)
        if module.startswith("pandas") and kind == "DataFrame":
            return self._embed_frame(batch)
        if hasattr(batch, "data") and isinstance(batch.data, Mapping):  # a lazy batch of datasets
            return self._embed_dict(dict(batch.items()))
        raise DataError(
            f"got a {kind} where a table was expected; give an Arrow table or record batch, a "
            "pandas frame or a dict of lists"
        )

    def map(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return an iterator over batches with vectors, as Spark's `mapInArrow` wants it."""
        return map(self, batches)

    def _load(self) -> Embedder:
        """Load the model; what was unpickled shares a model with others of the same settings."""
        if self._fingerprint is not None and (shared := _loaded.get(self._key(self._fingerprint))):
            return shared
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        model = self._model
        found = model if isinstance(model, Embedder) else load(model, **self._settings)
        fingerprint = found.model.fingerprint()
        if self._fingerprint not in (None, fingerprint):
            raise ModelError(
                f"the model at {model or 'the elmore package'} is not the one that this "
                "ArrowEmbedder was made with; use the same model on all machines"
            )
        _loaded[self._key(fingerprint)] = found
        while len(_loaded) > MAX_LOADED:
            _loaded.popitem(last=False)
        return found

    def _key(self, fingerprint: str) -> str:
        model = self._model
        name = model.__getstate__()["settings"] if isinstance(model, Embedder) else model
        return json.dumps([name, self._settings, fingerprint], default=str)

    def _embed(self, texts: list[Any]) -> tuple[list[Any], list[list[str]] | None]:
        """Return the vectors of each text, (D,) or (tokens, D), and the tokens if not pooled."""
        embedder = self.embedder
        tokens = [None if text is None else self._tokenize(text) for text in texts]
        present = [sentence for sentence in tokens if sentence is not None]
        if self.pool is not None:
            found = iter(embedder.sentence_vectors(present, pool=self.pool, layers=self.layers))
        else:
            arrays = embedder.embed(present, layers=self.layers)
            found = iter([_join_layers(array) for array in arrays])
        vectors = [None if sentence is None else next(found) for sentence in tokens]
        return vectors, None if self.pool is not None else [words or [] for words in tokens]

    def _tokenize(self, text: Any) -> list[str]:
        if self.tokenized:
            if isinstance(text, str):
                raise DataError(
                    f"the column {self.column!r} has the text {text!r:.40}, but lists of tokens "
                    "were expected; leave out tokenized"
                )
            return [str(token) for token in text]
        if not isinstance(text, str):
            raise DataError(
                f"the column {self.column!r} has {text!r:.40}, but texts were expected; if it "
                "holds lists of tokens, say tokenized=True"
            )
        return self.embedder.tokenize(text)

    def _embed_dict(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        given = self._find_column(batch, list(batch))
        if isinstance(given, str) or given is None:  # one row: datasets without `batched`
            (vector,), tokens = self._embed([given])
            return {
                **batch,
                self.output: vector,
                **({} if tokens is None else {"tokens": tokens[0]}),
            }
        vectors, tokens = self._embed(_to_list(given))
        is_whole = self.pool is not None and all(vector is not None for vector in vectors)
        column: Any = np.stack(vectors) if is_whole and vectors else vectors
        return {**batch, self.output: column, **({} if tokens is None else {"tokens": tokens})}

    def _embed_frame(self, frame: Any) -> Any:
        texts = self._find_column(frame, list(frame.columns)).tolist()
        vectors, tokens = self._embed([None if _is_missing(text) else text for text in texts])
        result = frame.copy()
        if tokens is not None:
            result["tokens"] = tokens
        result[self.output] = vectors if self.pool is not None else [_to_rows(v) for v in vectors]
        return result

    def _embed_arrow(self, table: Any) -> Any:
        pyarrow = _import_pyarrow()
        names = list(table.schema.names)
        vectors, tokens = self._embed(self._find_column(table, names).to_pylist())
        columns = {name: table.column(name) for name in names}
        if tokens is not None:
            columns["tokens"] = pyarrow.array(tokens, pyarrow.list_(pyarrow.string()))
        columns[self.output] = self._to_arrow(vectors)
        make = pyarrow.RecordBatch if isinstance(table, pyarrow.RecordBatch) else pyarrow.Table
        return make.from_arrays(list(columns.values()), names=list(columns))

    def _to_arrow(self, vectors: list[Any]) -> Any:
        pyarrow = _import_pyarrow()
        dim = self.embedder.vector_dim * (self.embedder.choose_layers(self.layers).num_kept or 1)
        present = [vector.reshape(-1, dim) for vector in vectors if vector is not None]
        flat = np.concatenate(present) if present else np.zeros((0, dim), np.float32)
        if self.pool is not None and len(present) < len(vectors):
            return pyarrow.array(
                vectors, pyarrow.list_(pyarrow.float32(), dim if self.fixed_size else -1)
            )
        values = pyarrow.array(flat.reshape(-1))
        if self.fixed_size:
            rows = pyarrow.FixedSizeListArray.from_arrays(values, dim)
        else:
            offsets = pyarrow.array(np.arange(len(flat) + 1, dtype=np.int32) * np.int32(dim))
            rows = pyarrow.ListArray.from_arrays(offsets, values)
        if self.pool is not None:
            return rows
        ends = np.cumsum([0, *(0 if vector is None else len(vector) for vector in vectors)])
        mask = pyarrow.array([vector is None for vector in vectors], pyarrow.bool_())
        return pyarrow.ListArray.from_arrays(
            pyarrow.array(ends.astype(np.int32)), rows, mask=mask if len(vectors) else None
        )

    def _find_column(self, table: Any, names: list[str]) -> Any:
        if self.column not in names:
            raise DataError(
                f"the table has no column {self.column!r}; it has {', '.join(names[:20])}: choose "
                "one with column="
            )
        return table[self.column]


def _read_pool(pool: Pool | str) -> str:
    if pool == Pool.SIMILARITY:
        raise ConfigError(
            "pool similarity is not available for tables; use Embedder.sentence_vectors, or mean, "
            "max or last"
        )
    return str(read_choice("pool", pool, Pool))


def _join_layers(vectors: Any) -> Any:
    """Turn (layers, tokens, D) into (tokens, layers * D)."""
    if vectors.ndim == 2:
        return vectors
    return vectors.transpose(1, 0, 2).reshape(vectors.shape[1], -1)


def _to_list(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _to_rows(vectors: Any) -> Any:
    """Return (tokens, D) as a list of rows, which pandas and Arrow can store."""
    return None if vectors is None else list(vectors)


def _is_missing(text: Any) -> bool:
    """Return whether a cell of pandas is empty: None, NaN or NA."""
    return text is None or type(text).__name__ == "NAType" or isinstance(text, float)


def _import_pyarrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415  not every kind of table needs it
    except ImportError as error:
        raise MissingExtraError(needed_for="a table of Arrow", extra="parquet") from error
    return pyarrow

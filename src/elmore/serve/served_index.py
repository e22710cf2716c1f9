"""The index of a server: what the page shows of the uses of words, and the model for typed uses."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from elmore import ElmoreError, Embedder, UseIndex
from elmore.serve.errors import RequestError
from elmore.serve.explore_schemas import GroupsQuery, MapQuery, TypedToken, UsesQuery
from elmore.serve.served_models import ServedModel

# Maps and groups of the last queries are kept: they take up to seconds, and the index is constant.
_NUM_KEPT = 64


class ServedIndex:
    """Answers queries about one index; all methods return what can be written as JSON."""

    def __init__(self, index: UseIndex, models: Sequence[ServedModel]) -> None:
        self.index = index
        self.model = next((model for model in models if _has_model(index, model.embedder)), None)
        self.map = lru_cache(_NUM_KEPT)(self._map)
        self.groups = lru_cache(_NUM_KEPT)(self._groups)

    def describe(self) -> dict[str, Any]:
        """Return what the page needs to know before the first query."""
        index = self.index
        return {
            "name": index.folder.name,
            "num_tokens": index.num_tokens,
            "num_words": index.num_words,
            "num_sentences": index.num_sentences,
            "layers": list(index.layers),
            "language": index.language,
            "sources": [source.name for source in index.sources],
            "tags": index.tags,
            "indexed_words": index.indexed_words,
            "model": index.model,
            "served_model": None if self.model is None else self.model.name,
            "map_methods": ["pca", "tsne"] if find_spec("openTSNE") else ["pca"],
        }

    def words(
        self, prefix: str, *, top: int, skip_stop_words: bool = False
    ) -> list[dict[str, Any]]:
        """Return the most frequent words with this prefix; only words that have vectors."""
        most = top if not self.index.indexed_words else 1 << 40
        found = self.index.words(prefix, top=most, skip_stop_words=skip_stop_words)
        chosen = set(self.index.indexed_words)
        kept = [entry for entry in found if not chosen or entry.word.casefold() in chosen]
        return [asdict(entry) for entry in kept[:top]]

    def uses(self, query: UsesQuery) -> dict[str, Any]:
        """Return the uses of a word."""
        return asdict(self._find(query))

    def _map(self, query: MapQuery) -> dict[str, Any]:
        return self._describe_uses(query, self.index.map, method=query.method)

    def _groups(self, query: GroupsQuery) -> dict[str, Any]:
        return self._describe_uses(query, self.index.groups, num_groups=query.num_groups)

    def _describe_uses(
        self, query: MapQuery | GroupsQuery, describe: Callable[..., Any], **settings: Any
    ) -> dict[str, Any]:
        """Return the uses that a query finds, with their map or groups in one layer."""
        uses = self._find(query).uses
        found = describe(uses, query.layer, center_by_spelling=query.center_by_spelling, **settings)
        return {"layer": query.layer, "numbers": [use.number for use in uses], **asdict(found)}

    def find_query(self, given: int | TypedToken) -> Any:
        """Return what the index takes as a use: a number, or a token of a typed sentence."""
        if isinstance(given, int):
            return given
        if self.model is None:
            raise RequestError(
                404,
                f"the index was built with the model {self.index.model!r}, which this server does "
                "not have, so only its own uses can be compared; start the server with --model",
                field="use",
            )
        return self.index.typed_use(self.model.embedder, given.sentence, given.token)

    def locate(self, query: Any) -> dict[str, Any]:
        """Return the sentence and the position of what `find_query` returned."""
        number = query if isinstance(query, int) else None
        use = query if number is None else self.index.use(number)
        return {"tokens": use.tokens, "position": use.position, "number": number}

    def _find(self, query: UsesQuery) -> Any:
        return self.index.uses(
            query.word,
            match_case=query.match_case,
            source=list(query.source) or None,
            tag=list(query.tag) or None,
            limit=query.limit,
        )


def _has_model(index: UseIndex, embedder: Embedder) -> bool:
    try:
        index.check_model(embedder)
    except ElmoreError:
        return False
    return True

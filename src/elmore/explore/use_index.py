"""Open an index, and find the uses of words and the uses most similar to a given one.

Shapes: n uses, D both directions of one layer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmore.arguments import explain_calls
from elmore.embed.embedder import Embedder, Sentence
from elmore.errors import ConfigError, DataError
from elmore.explore.index_files import check_files, open_files
from elmore.explore.index_state import FOLDER, damaged, norms_name, vectors_name
from elmore.explore.indexed_text import IndexedText, Names, Numbers
from elmore.explore.nearest_rows import cosines_with, find_highest
from elmore.explore.search_graph import SearchGraph
from elmore.explore.use_groups import UseGroups, find_groups
from elmore.explore.use_map import MapMethod, UseMap, draw_map
from elmore.explore.uses import (
    Array,
    NearbyUse,
    TypedUse,
    Use,
    UseList,
    WordCount,
    spread_evenly,
    to_unit_length,
)
from elmore.explore.vector_rows import VectorRows
from elmore.settings import check_range, read_choice, read_path

MAX_COUNT = 1 << 62
# Made by recipes/example_index, with the English model.
EXAMPLE = Path(__file__).parent / "example"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFacts:
    """A text file in an index."""

    name: str
    num_sentences: int
    num_tokens: int


@explain_calls()
def open_index(folder: str | Path | None = None) -> "UseIndex":
    """Open an index that `elmore index` or `build_index` made; by default, elmore's example.

    The example has uses of ten ambiguous words in public-domain books. Opening an index maps the
    files into memory and checks their sizes and numbers; it needs no model.

    ```python
    index = elmore.open_index("index")
    found = index.uses("bank", limit=100)
    print(found.total, found.uses[0].tokens)
    ```
    """
    return UseIndex(EXAMPLE if folder is None else read_path("folder", folder))


class UseIndex:
    """All uses of all words in some text, with their vectors.

    A use has a number, which methods take and `use` looks up. Vectors are stored in f16.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state, self._arrays = open_files(folder)
        self._text = IndexedText(folder, self._state, self._arrays)
        self._rows = VectorRows(folder, self._state, self._text)
        self._graphs: dict[int, SearchGraph] = {}

    def __repr__(self) -> str:
        return (
            f"<UseIndex {str(self.folder)!r}: {self.num_tokens:,} tokens, {self.num_words:,} "
            f"words, layers {list(self.layers)}, model {self.model!r}>"
        )

    @property
    def num_tokens(self) -> int:
        """The number of tokens, each of them a use."""
        return self._state.num_tokens

    @property
    def num_words(self) -> int:
        """The number of different spellings."""
        return self._state.num_words

    @property
    def num_sentences(self) -> int:
        """The number of sentences."""
        return self._state.num_sentences

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of the layers that are stored."""
        return self._state.settings.layers

    @property
    def num_layers(self) -> int:
        """The number of layers of the model."""
        return self._state.settings.num_layers

    @property
    def vector_dim(self) -> int:
        """Width of a vector: both directions."""
        return self._state.settings.vector_dim

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._state.settings.model

    @property
    def model_hash(self) -> str:
        """The fingerprint of the model."""
        return self._state.settings.model_hash

    @property
    def language(self) -> str:
        """How sentences were split into tokens."""
        return self._state.settings.language

    @property
    def sources(self) -> list[SourceFacts]:
        """The text files."""
        return [
            SourceFacts(
                name=source.name, num_sentences=source.num_sentences, num_tokens=source.num_tokens
            )
            for source in self._state.sources
        ]

    @property
    def indexed_words(self) -> list[str]:
        """The words whose uses have vectors, case-folded; empty if all have."""
        return list(self._state.settings.words)

    @property
    def tags(self) -> list[str]:
        """The parts of speech that occur; empty unless there is text from CoNLL-U."""
        return list(self._state.tags)

    def check(self) -> None:
        """Read all files and compare their checksums; raise an error if one is damaged."""
        check_files(self.folder, self._state)

    def words(
        self, prefix: str = "", *, top: int = 20, skip_stop_words: bool = False
    ) -> list[WordCount]:
        """Return the most frequent words that start with `prefix`, ignoring case.

        `skip_stop_words` leaves out stop words, punctuation and numbers.
        """
        check_range("top", top, 0, MAX_COUNT)
        return self._text.complete(prefix, top=top, skip_stop_words=skip_stop_words)

    def uses(
        self,
        word: str,
        *,
        match_case: bool = False,
        source: Names = None,
        tag: Names = None,
        limit: int | None = 1000,
    ) -> UseList:
        """Return the uses of a word, in the order of the text.

        Case is ignored unless `match_case`. `source` and `tag` keep only uses in these files or
        with these parts of speech. If more than `limit` uses are left, the result is a sample
        that is spread evenly over them, always the same one; None keeps all.
        """
        if limit is not None:
            check_range("limit", limit, 1, MAX_COUNT)
        ids = self._text.find_ids(word, match_case=match_case)
        numbers = self._text.find_numbers(ids)
        numbers = numbers[self._text.matches(numbers, source=source, tag=tag)]
        kept = numbers[spread_evenly(len(numbers), limit or len(numbers))]
        return UseList(
            word=word,
            total=len(numbers),
            is_sample=len(kept) < len(numbers),
            spellings=self._text.count_spellings(ids),
            uses=self._text.make_uses(kept),
        )

    def use(self, number: int) -> Use:
        """Return the use with this number."""
        return self._text.make_uses(self._text.check_numbers([number]))[0]

    def vectors(self, uses: Sequence[int | Use], layer: int) -> Array:
        """Return the (n, D) vectors of some uses, or of their numbers, in f32."""
        return self._read_vectors(self._text.check_numbers(uses), self._check_layer(layer))

    def _read_vectors(self, numbers: Numbers, layer: int) -> Array:
        rows = self._rows.find(numbers, layer)
        name = vectors_name(layer)
        vectors = np.asarray(self._arrays[name][rows], np.float32)
        if not np.isfinite(vectors).all():
            raise damaged(f"{self.folder / name} is damaged (it has numbers that are not finite)")
        return vectors

    def typed_use(self, embedder: Embedder, sentence: Sentence, token: int | str) -> TypedUse:
        """Embed a token of a new sentence, to look for similar uses in the index.

        `token` is its position from 0, or the word, whose first occurrence counts. The embedder
        must have the model that the index was built with.
        """
        self.check_model(embedder)
        tokens = embedder.tokenize([sentence])[0]  # type: ignore[list-item]
        position = _find_token(tokens, token)
        vectors = embedder.embed([tokens], layers=list(self.layers))[0]
        return TypedUse(tokens=tokens, position=position, vectors=vectors[:, position])

    def check_model(self, embedder: Embedder) -> None:
        """Raise an error if an embedder has another model than the index."""
        if embedder.model.fingerprint() != self.model_hash:
            raise DataError(
                f"{self.folder} was built with the model {self.model!r} "
                f"({self.model_hash[:12]}), but this is {embedder.model.config.about.name!r} "
                f"({embedder.model.fingerprint()[:12]}); give the index's model, or build the "
                "index again"
            )

    def nearest(
        self,
        use: int | Use | TypedUse,
        layer: int,
        *,
        top: int = 10,
        word: str | None = None,
        match_case: bool = False,
        source: Names = None,
        tag: Names = None,
        approximate: bool = False,
    ) -> list[NearbyUse]:
        """Return the uses whose vectors have the highest cosine with this one's, highest first.

        All words count, or only `word`. The filters are those of `uses`. The search is exact,
        unless `approximate`: then a graph from `build_graph` is used, which takes no filters.
        """
        check_range("top", top, 0, MAX_COUNT)
        layer = self._check_layer(layer)
        query = self._query(use, layer)
        if approximate:
            if (word, source, tag) != (None, None, None):
                raise ConfigError(
                    "approximate search takes no word, source or tag; leave them out, or search "
                    "exactly"
                )
            return self._search_graph(use, query, layer, top=top)
        numbers = self._rows.numbers
        if word is not None:
            numbers = self._text.find_numbers(self._text.find_ids(word, match_case=match_case))
        if source is not None or tag is not None:
            numbers = numbers[self._text.matches(numbers, source=source, tag=tag)]
        if not isinstance(use, TypedUse):
            numbers = numbers[numbers != self._text.check_numbers([use])[0]]
        if word is not None:  # a few rows of the layer
            similarities = self._cosines_of(numbers, query, layer)
        else:
            similarities = self._cosines(query, layer)[self._rows.find(numbers, layer)]
        return self._rank(numbers, similarities, top=top)

    def build_graph(self, layer: int, *, on_progress: Callable[[int], None] | None = None) -> None:
        """Build the graph for approximate search in a layer, or extend it after text was added.

        This needs the extra `search`, about as much space as the layer, and time: exact search is
        fast enough for millions of tokens. `on_progress` is called with the number of vectors done.
        """
        graph = self._graph(self._check_layer(layer))
        with FOLDER.hold(self.folder):
            graph.build(on_progress)

    def compare(self, use: int | Use | TypedUse, other: int | Use | TypedUse) -> dict[int, float]:
        """Return the cosine of two uses in each stored layer, by layer."""
        found = {}
        for layer in self.layers:
            one, two = self._query(use, layer), self._query(other, layer)
            lengths = float(np.linalg.norm(one)) * float(np.linalg.norm(two))
            found[layer] = float(one @ two) / max(lengths, 1e-12)
        return found

    def map(
        self,
        uses: Sequence[int | Use],
        layer: int,
        *,
        method: MapMethod | str = MapMethod.PCA,
        center_by_spelling: bool = False,
    ) -> UseMap:
        """Return a point in the plane for each use: by PCA at once, or by t-SNE in seconds.

        Vectors are scaled to length 1 first. With `center_by_spelling`, the mean of the given
        uses with the same spelling is subtracted from each, so that "bank" and "Bank" do not
        differ by their capital alone. t-SNE needs the extra `explore`.
        """
        chosen = MapMethod(read_choice("method", method, MapMethod))
        vectors, spellings = self.vectors(uses, layer), self._spellings(uses)
        return draw_map(vectors, spellings, method=chosen, center_by_spelling=center_by_spelling)

    def groups(
        self,
        uses: Sequence[int | Use],
        layer: int,
        *,
        num_groups: int | None = None,
        center_by_spelling: bool = False,
    ) -> UseGroups:
        """Divide uses into groups with similar vectors, and name each group's distinctive words.

        These are groups of uses, not senses. By default their number is the one from 2 to 6 with
        the highest mean silhouette.
        """
        listed = self._text.make_uses(self._text.check_numbers(uses))
        return find_groups(
            self.vectors(uses, layer),
            listed,
            num_groups=num_groups,
            center_by_spelling=center_by_spelling,
        )

    def _spellings(self, uses: Sequence[int | Use]) -> list[str]:
        numbers = self._text.check_numbers(uses)
        return [self._text.words[word] for word in self._text.tokens[numbers].tolist()]

    def _query(self, use: int | Use | TypedUse, layer: int) -> Array:
        if isinstance(use, TypedUse):
            return np.asarray(use.vectors[self.layers.index(layer)], np.float32)
        return self.vectors([use], layer)[0]

    def _cosines_of(self, numbers: Numbers, query: Array, layer: int) -> Array:
        """Return the cosine of some tokens' vectors with the query."""
        return to_unit_length(self._read_vectors(numbers, layer)) @ to_unit_length(query)

    def _cosines(self, query: Array, layer: int) -> Array:
        """Return the cosine of every row of a layer with the query."""
        vectors, norms = self._arrays[vectors_name(layer)], self._arrays[norms_name(layer)]
        return cosines_with(vectors, norms, query)

    def _graph(self, layer: int) -> SearchGraph:
        if layer == 0:
            raise ConfigError(
                "layer 0 has one vector per word and needs no graph; search it exactly"
            )
        if layer not in self._graphs:
            vectors = self._arrays[vectors_name(layer)]
            self._graphs[layer] = SearchGraph(self.folder, layer, vectors)
        return self._graphs[layer]

    def _search_graph(
        self, use: int | Use | TypedUse, query: Array, layer: int, *, top: int
    ) -> list[NearbyUse]:
        """Return about the nearest uses, with their exact cosines."""
        # One more, because the use itself is among them.
        numbers = self._rows.numbers[np.sort(self._graph(layer).search(query, top + 1))]
        if not isinstance(use, TypedUse):
            numbers = numbers[numbers != self._text.check_numbers([use])[0]]
        return self._rank(numbers, self._cosines_of(numbers, query, layer), top=top)

    def _rank(self, numbers: Numbers, similarities: Array, *, top: int) -> list[NearbyUse]:
        best = find_highest(similarities, top)
        uses = self._text.make_uses(numbers[best])
        return [
            NearbyUse(similarity=float(similarity), use=use)
            for similarity, use in zip(similarities[best], uses, strict=True)
        ]

    def _check_layer(self, layer: int) -> int:
        is_number = isinstance(layer, int | np.integer) and not isinstance(layer, bool)
        if not is_number or layer not in self.layers:
            raise ConfigError(
                f"layer is {layer!r:.60}, but the index has the layers "
                f"{', '.join(map(str, self.layers))}; choose one of them"
            )
        return int(layer)


def _find_token(tokens: Sequence[str], token: int | str) -> int:
    """Return the position of a token that was given as a position or as a word."""
    sentence = " ".join(tokens)
    if isinstance(token, str):
        folded = [other.casefold() for other in tokens]
        if token.casefold() not in folded:
            raise DataError(
                f"the sentence {sentence!r:.200} does not contain the word {token!r:.60}; give one "
                "that does"
            )
        return tokens.index(token) if token in tokens else folded.index(token.casefold())
    if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < len(tokens):
        raise DataError(
            f"token is {token!r:.60}, but the sentence {sentence!r:.200} has {len(tokens)} tokens; "
            "give a position from 0, or a word"
        )
    return token

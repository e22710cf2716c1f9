"""A corpus that lives in memory, written the plain way: for tests, and as an oracle."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from elmore.corpus.part import Lookup

MARKS = ["<S>", "</S>", "<UNK>"]


class MemoryPart:
    """What a `CorpusPart` answers, found by walking through lists."""

    def __init__(self, documents: list[list[list[str]]], vocabulary: list[str]) -> None:
        self._documents = documents
        self._ids = {word: number for number, word in enumerate(vocabulary)}
        self.symbols: list[str | None] = []  # None and "" stand for the markers
        self._bounds: list[tuple[int, int]] = []
        for document in documents:
            for sentence in document:
                start = len(self.symbols)
                self.symbols += ["<S>", *sentence, "</S>"]
                self._bounds += [(start, len(self.symbols))] * (len(sentence) + 2)
        self.num_symbols = len(self.symbols)
        self.num_documents = len(documents)
        self.num_sentences = sum(map(len, documents))
        self.num_tokens = self.num_symbols - 2 * self.num_sentences
        self.num_characters = sum(len(t) + 1 for d in documents for s in d for t in s)

    def documents(self) -> Iterator[list[list[str]]]:
        return iter(self._documents)

    def beginning(self, number: int, *, max_tokens: int) -> list[list[str]]:
        return _take(self._documents[number], max_tokens)

    def stretch(self, offset: int, *, max_tokens: int) -> list[list[str]]:
        start = 0
        for document in self._documents:
            for place, sentence in enumerate(document):
                start += len(sentence) + 2
                if offset < start:
                    return _take(document[place:], max_tokens)
        raise IndexError(offset)

    def sentence_bounds(self, offsets: Any) -> tuple[Any, Any]:
        bounds = np.array([self._bounds[offset] for offset in np.ravel(offsets)])
        shape = np.shape(offsets)
        return bounds[:, 0].reshape(shape), bounds[:, 1].reshape(shape)

    def look_up(self, offsets: Any) -> Lookup:
        tokens: list[str] = []
        positions, word_ids = [], []
        for offset in np.ravel(offsets):
            begin, end = self._bounds[offset]
            symbol = self.symbols[offset]
            if offset == begin:
                positions.append(0)
            elif offset == end - 1:
                positions.append(1)
            else:
                if symbol not in tokens:
                    tokens.append(symbol)
                positions.append(2 + tokens.index(symbol))
            word_ids.append(self._ids.get(symbol, self._ids["<UNK>"]))
        shape = np.shape(offsets)
        return Lookup(
            tokens=tokens,
            positions=np.array(positions, np.int64).reshape(shape),
            word_ids=np.array(word_ids, np.int64).reshape(shape),
        )


@dataclass
class MemoryCorpus:
    vocabulary: list[str]
    counts: Any
    train: MemoryPart
    heldout: MemoryPart
    fingerprint: str = "memory"
    folder: Path = Path("memory")
    about: dict[str, Any] = field(default_factory=dict)

    def check_shards(self, **_options: Any) -> None:
        """Do nothing: what is in memory has no checksums."""


def make_corpus(
    text: str, heldout: str = "", *, vocabulary: list[str] | None = None, min_count: int = 1
) -> MemoryCorpus:
    """Read tokenised lines; a blank line ends a document."""
    train_documents, heldout_documents = _split(text), _split(heldout)
    counts = Counter(token for d in train_documents for s in d for token in s)
    if vocabulary is None:
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        vocabulary = [*MARKS, *(word for word in ranked if counts[word] >= min_count)]
    known = set(vocabulary)
    num_sentences = sum(map(len, train_documents))
    unknown = sum(number for word, number in counts.items() if word not in known)
    special = {"<S>": num_sentences, "</S>": num_sentences, "<UNK>": unknown}
    return MemoryCorpus(
        vocabulary=vocabulary,
        counts=np.array([special.get(word, counts[word]) for word in vocabulary], np.int64),
        train=MemoryPart(train_documents, vocabulary),
        heldout=MemoryPart(heldout_documents, vocabulary),
    )


def _take(sentences: list[list[str]], max_tokens: int) -> list[list[str]]:
    taken: list[list[str]] = []
    for sentence in sentences:
        if taken and sum(map(len, taken)) + len(sentence) > max_tokens:
            break
        taken.append(sentence)
    return taken


def _split(text: str) -> list[list[list[str]]]:
    blocks = [block.strip() for block in text.split("\n\n")]
    return [[line.split() for line in block.splitlines()] for block in blocks if block]

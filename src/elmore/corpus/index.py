"""Index shards into a corpus: the vocabulary, word ids of every shard's types, and the two parts.

Shapes: T types of a shard, R runs of documents in it, K segments, V words.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmore.corpus.folder import (
    COUNTS,
    DOCUMENTS,
    PARTS,
    SEGMENTS,
    VOCABULARY,
    WORD_IDS,
    shard_path,
)
from elmore.corpus.shards import NUM_MARKERS, Shard
from elmore.corpus.split import Runs, Split, count_types, split_shards
from elmore.corpus.word_counts import WordCounts
from elmore.files.atomic import replace_file
from elmore.text.vocabulary import (
    BEGIN_WORD,
    END_WORD,
    UNKNOWN_WORD,
    number_entries,
    write_entries,
)


@dataclass(kw_only=True)
class PartTotals:
    """The size of a part."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    characters: int = 0
    symbols: int = 0
    outside: int = 0  # tokens that are not in the vocabulary


@dataclass(frozen=True, kw_only=True)
class ShardSequence:
    """The shards of a folder, opened one at a time; can be iterated repeatedly."""

    folder: Path
    num_shards: int
    on_shard: Callable[[], None]

    def __iter__(self) -> Iterator[Shard]:
        for number in range(self.num_shards):
            yield Shard(shard_path(self.folder, number))
            self.on_shard()


def count_words(shards: ShardSequence, split: Split, *, max_types: int) -> WordCounts:
    """Count the words of the training part."""
    words = WordCounts(max_types=max_types)
    for shard, runs in split_shards(shards, split):
        words.add(shard.types(), count_types(shard, runs)[0].tolist())
    return words


def write_index(
    shards: ShardSequence, split: Split, vocabulary: list[str]
) -> dict[str, PartTotals]:
    """Write all files of a corpus except shards and corpus.json; return the size of each part."""
    with replace_file(shards.folder / VOCABULARY) as temporary:
        write_entries(temporary, vocabulary)
    ids = number_entries(vocabulary)
    markers = [ids[BEGIN_WORD], ids[END_WORD]]
    counts = np.zeros(len(vocabulary), "<i8")
    with ExitStack() as files:
        id_file = files.enter_context(_create(shards.folder / WORD_IDS))
        writers = [files.enter_context(_open_part(shards.folder, part)) for part in PARTS]
        for number, (shard, runs) in enumerate(split_shards(shards, split)):
            find_id = ids.get
            type_ids = np.array(
                [find_id(token, ids[UNKNOWN_WORD]) for token in shard.types()], np.int64
            )
            id_file.write(np.append(markers, type_ids).astype("<u4").tobytes())
            in_parts = count_types(shard, runs)
            for writer, type_counts in zip(writers, in_parts, strict=True):
                writer.add_text(number, runs)
                writer.totals.characters += int(type_counts @ shard.type_lengths())
                writer.totals.outside += int(type_counts[type_ids == ids[UNKNOWN_WORD]].sum())
            np.add.at(counts, type_ids, in_parts[0])
        totals = {part: writer.totals for part, writer in zip(PARTS, writers, strict=True)}
    counts[markers] += totals["train"].sentences
    with _create(shards.folder / COUNTS) as file:
        file.write(counts.tobytes())
    return totals


class _PartWriter:
    """Records where in the shards the documents of a part are."""

    def __init__(self, part: int, *, document_file: BinaryIO) -> None:
        self.totals = PartTotals()
        self._part = part
        self._document_file = document_file
        self._segments: list[tuple[int, int, int]] = []

    def add_text(self, shard_number: int, runs: Runs) -> None:
        """Add the documents of the next shard that belong to this part."""
        start = self.totals.symbols
        for stretch in runs.slices(self._part):
            self._segments.append((start, shard_number, stretch.start))
            start += stretch.stop - stretch.start
        is_ours = runs.parts == self._part
        lengths = np.diff(runs.symbols)[is_ours]
        starts = self.totals.symbols + np.cumsum(lengths) - lengths
        if runs.is_continued and is_ours[0]:
            starts = starts[1:]
        self._document_file.write(starts.astype("<i8").tobytes())
        num_sentences = int(np.diff(runs.sentences)[is_ours].sum())
        self.totals.documents += len(starts)
        self.totals.sentences += num_sentences
        self.totals.symbols += int(lengths.sum())
        self.totals.tokens += int(lengths.sum()) - NUM_MARKERS * num_sentences

    def end_documents(self) -> None:
        """Record the end of the last document."""
        self._document_file.write(np.array([self.totals.symbols], "<i8").tobytes())

    def segments(self) -> NDArray[np.int64]:
        """Return (3, K) the start of each segment in the part, its shard, and its start there."""
        return np.array(self._segments, "<i8").reshape(-1, 3).T


@contextmanager
def _open_part(folder: Path, part: str) -> Iterator[_PartWriter]:
    with _create(folder / DOCUMENTS[part]) as document_file:
        writer = _PartWriter(PARTS.index(part), document_file=document_file)
        yield writer
        writer.end_documents()
    with _create(folder / SEGMENTS[part]) as file:
        file.write(writer.segments().tobytes())  # in row-major order


@contextmanager
def _create(path: Path) -> Iterator[BinaryIO]:
    with replace_file(path) as temporary, temporary.open("wb") as file:
        yield file

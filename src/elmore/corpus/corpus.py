"""A prepared corpus: its vocabulary, its training text and its held-out text.

Everything large is memory-mapped. docs/reference/corpora.md specifies the files.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.arguments import explain_calls
from elmore.corpus.checks import (
    check_counts,
    check_documents,
    check_segments,
    check_word_ids,
    find_file_damage,
    find_shard_damage,
    find_size_damage,
)
from elmore.corpus.folder import (
    COUNTS,
    DOCUMENTS,
    JOB,
    PARTS,
    SEGMENTS,
    SUMMARY,
    VOCABULARY,
    WORD_IDS,
    damaged,
    read_ours,
    shard_path,
)
from elmore.corpus.part import CorpusPart, OnShards, ShardFiles
from elmore.corpus.shards import ShardFacts
from elmore.corpus.summary import has_checksum, read_summary
from elmore.errors import DataError, DataWarning, warn_caller
from elmore.settings import read_path
from elmore.text.vocabulary import UNKNOWN_WORD, read_word_list
from elmore.wording import count

# How many damaged files an error message names.
MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True, repr=False)
class Corpus:
    """A prepared corpus, to train a language model on."""

    folder: Path
    vocabulary: list[str]
    counts: NDArray[np.int64]  # (V,) how often each word id occurs in the training part
    fingerprint: str
    """Identifies the text, the vocabulary and the choice of held-out documents."""
    train: CorpusPart
    heldout: CorpusPart
    about: dict[str, Any]
    shards: ShardFiles

    def __repr__(self) -> str:
        return (
            f"<Corpus {str(self.folder)!r}: {self.train.num_tokens:,} tokens to train on, "
            f"{self.heldout.num_tokens:,} held out, vocabulary of {len(self.vocabulary):,}>"
        )

    def check_shards(
        self, *, rank: int = 0, num_ranks: int = 1, on_shard: OnShards = lambda *_counts: None
    ) -> None:
        """Verify the checksums of shards now instead of when each is first read.

        With `num_ranks` processes, each verifies its share and then treats all shards as verified,
        so all processes must stop if one finds damage.
        """
        self.shards.check(rank=rank, num_ranks=num_ranks, on_shard=on_shard)


@explain_calls()
def open_corpus(folder: str | os.PathLike[str]) -> Corpus:
    """Open a prepared corpus, and verify the checksums of all files except the shards.

    The checksum of a shard is verified before it is first read.
    """
    folder = read_path("the corpus", folder)
    summary = read_summary(folder)
    facts = [ShardFacts(**entry) for entry in summary["shards"]]  # checked already
    for name, entry in summary["files"].items():
        _refuse(find_file_damage(folder / name, entry))
    for number, shard in enumerate(facts):
        _refuse(find_size_damage(shard_path(folder, number), num_bytes=shard.num_bytes))
    if not has_checksum(summary):
        warn_caller(
            f"{folder / SUMMARY} was written by an older version of elmore and has no checksum of "
            "its own, so damage to it may go unnoticed; the other files are checked",
            DataWarning,
        )
    return _load(folder, summary, facts)


def _load(folder: Path, summary: dict[str, Any], facts: Sequence[ShardFacts]) -> Corpus:
    """Read files whose checksums match; if another program wrote them, they may still be wrong."""
    totals = summary["parts"]
    vocabulary = read_word_list(folder / VOCABULARY)
    counts = _map(folder / COUNTS, "<i8")
    word_ids = _map(folder / WORD_IDS, "<u4")
    segments = {part: _map(folder / SEGMENTS[part], "<i8").reshape(3, -1) for part in PARTS}
    starts = {part: _map(folder / DOCUMENTS[part], "<i8") for part in PARTS}
    with _explaining_damage(folder / VOCABULARY):
        if len(vocabulary) != summary["vocabulary_size"]:
            raise ValueError(f"it has {len(vocabulary)} words, not {summary['vocabulary_size']}")
    with _explaining_damage(folder / COUNTS):
        check_counts(counts, num_symbols=totals["train"]["symbols"])
    with _explaining_damage(folder / WORD_IDS):
        check_word_ids(word_ids, num_words=len(vocabulary))
    for part in PARTS:
        num_symbols = totals[part]["symbols"]
        with _explaining_damage(folder / SEGMENTS[part]):
            check_segments(segments[part], num_symbols=num_symbols, shards=facts)
        with _explaining_damage(folder / DOCUMENTS[part]):
            check_documents(starts[part], num_symbols=num_symbols)
    shards = ShardFiles(folder, facts, word_ids=word_ids)
    parts = {
        part: CorpusPart(
            totals=totals[part],
            segments=segments[part],
            document_starts=starts[part],
            shards=shards,
            vocabulary=vocabulary,
            unknown_id=vocabulary.index(UNKNOWN_WORD),
        )
        for part in PARTS
    }
    return Corpus(
        folder=folder,
        vocabulary=vocabulary,
        counts=counts,
        fingerprint=summary["fingerprint"],
        train=parts["train"],
        heldout=parts["heldout"],
        about=summary,
        shards=shards,
    )


def check_corpus(
    folder: str | os.PathLike[str], *, on_shard: OnShards = lambda *_counts: None
) -> Corpus:
    """Read and verify a whole corpus; a `DataError` names the files that are damaged."""
    folder = Path(folder)
    summary = read_summary(folder)
    found = [find_file_damage(folder / name, entry) for name, entry in summary["files"].items()]
    found.append(_find_job_damage(folder / JOB, summary.get("job")))
    num_shards = len(summary["shards"])
    for number, entry in enumerate(summary["shards"]):
        on_shard(number, num_shards)
        found.append(find_shard_damage(shard_path(folder, number), ShardFacts(**entry)))
    damages = [damage for damage in found if damage is not None]
    if damages:
        more = len(damages) - MAX_NAMED
        named = damages[:MAX_NAMED] + ([count(more, "other damaged file")] if more > 0 else [])
        raise damaged("; ".join(named))
    return open_corpus(folder)


def _find_job_damage(path: Path, entry: Mapping[str, Any] | None) -> str | None:
    """Check job.json, which only resuming needs; older versions recorded no checksum of it."""
    if entry is not None:
        return find_file_damage(path, entry)
    if not path.is_file():
        return None
    try:
        read_ours(path, any_format=True)
    except DataError:
        return f"{path} is damaged"
    return None


def _refuse(damage: str | None) -> None:
    if damage is not None:
        raise damaged(damage)


@contextmanager
def _explaining_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise damaged(f"{path} is damaged ({error})") from None


def _map(path: Path, dtype: str) -> NDArray[Any]:
    """Memory-map a file of numbers; empty files cannot be mapped and give an empty array."""
    if path.stat().st_size == 0:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray)

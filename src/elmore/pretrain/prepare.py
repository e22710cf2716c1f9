"""Turn text files into a prepared corpus: shards, a vocabulary, a part held out.

Chunks of text become shards in several processes; then the words are counted, shard by shard, and
the vocabulary is chosen. A killed run goes on with the shards it has. The files depend on the text
and the settings alone.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from elmore.errors import ConfigError, DataError
from elmore.pretrain.corpus import Corpus, open_corpus
from elmore.pretrain.corpus_folder import (
    FILES,
    SUMMARY,
    changed,
    check_job,
    hash_file,
    hold_folder,
    read_summary,
    remove_leftovers,
    shard_path,
    throw_away,
    write_json,
)
from elmore.pretrain.corpus_index import PartTotals, ShardRow, count_words, write_index
from elmore.pretrain.parts import choose_split
from elmore.pretrain.prepare_settings import BadBytesPolicy, PrepareSettings
from elmore.pretrain.shard_workers import MAX_BAD_PLACES, ShardMaker, make_shards
from elmore.pretrain.shards import Shard, ShardFacts
from elmore.pretrain.text_chunks import Chunk, Source, make_sources, read_chunks
from elmore.text.files import open_text
from elmore.text.language import Language
from elmore.text.vocabulary import read_word_list


@dataclass(frozen=True, kw_only=True)
class PrepareProgress:
    """How far it has come."""

    stage: str  # "reading" counts bytes of the files, "indexing" shards
    num_done: int
    num_total: int | None  # None: not known, as of standard input
    num_tokens: int
    num_new_tokens: int  # without those of an earlier run


OnProgress = Callable[[PrepareProgress], None]


def prepare_corpus(
    sources: Sequence[Path | BinaryIO],
    folder: Path,
    *,
    settings: PrepareSettings | None = None,
    heldout_sources: Sequence[Path | BinaryIO] = (),
    num_processes: int | None = None,
    restart: bool = False,
    on_progress: OnProgress | None = None,
) -> Corpus:
    """Prepare the text of files or streams; if interrupted, the same call goes on where it was.

    Without `num_processes` there is one a core. More than one import the calling program anew, so
    it must have its work under `if __name__ == "__main__"`.
    """
    settings, folder = settings or PrepareSettings(), Path(folder)
    texts = make_sources(sources, heldout_sources, form=settings.form)
    inputs = _describe_inputs(texts)
    words = None if settings.vocabulary is None else read_word_list(settings.vocabulary)
    try:
        with hold_folder(folder, restart=restart):
            if not _is_done(folder, texts, inputs=inputs, settings=settings):
                check_job(folder, _describe_job(inputs, settings))
                remove_leftovers(folder)
                progress = _Progress(inputs, on_progress)
                maker = ShardMaker(
                    folder=folder,
                    language=Language(settings.language),
                    bad_bytes=BadBytesPolicy(settings.bad_bytes),
                )
                chunks = read_chunks(
                    texts, chunk_bytes=settings.chunk_bytes, language=maker.language
                )
                facts = _make_missing_shards(
                    chunks, maker, num_processes=num_processes or count_cores(), progress=progress
                )
                _check_text(facts, texts)
                _finish(folder, facts, words, inputs=inputs, settings=settings, progress=progress)
    except _NoTextError:
        throw_away(folder)
        folder.rmdir()
        raise
    return open_corpus(folder)


def count_cores() -> int:
    """Return how many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):  # less than there are, in a container
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _NoTextError(DataError):
    """There is nothing to make a corpus of."""


def _describe_inputs(texts: Sequence[Source]) -> list[dict[str, Any]]:
    """Return what identifies each text; a missing one is noticed now, before hours of work."""
    if not any(not text.is_heldout for text in texts):
        raise ConfigError("there is no text to prepare; name at least one file")
    inputs = []
    for text in texts:
        with open_text(text.source):
            pass
        size = text.source.stat().st_size if isinstance(text.source, Path) else None
        part = "heldout" if text.is_heldout else "train"
        inputs.append({"name": text.name, "size": size, "form": str(text.form), "part": part})
    return inputs


def _describe_job(inputs: list[dict[str, Any]], settings: PrepareSettings) -> dict[str, Any]:
    """Return what the shards depend on; all else may still change while there is no corpus.json."""
    return {
        "inputs": inputs,
        "language": str(settings.language),
        "chunk_bytes": settings.chunk_bytes,
    }


def _describe_settings(settings: PrepareSettings) -> dict[str, Any]:
    content: dict[str, Any] = {**asdict(settings), "form": settings.form and str(settings.form)}
    if settings.vocabulary is not None:
        checksum = hash_file(settings.vocabulary)
        content["vocabulary"] = {"name": str(settings.vocabulary), "sha256": checksum}
    return content


def _is_done(
    folder: Path,
    texts: Sequence[Source],
    *,
    inputs: list[dict[str, Any]],
    settings: PrepareSettings,
) -> bool:
    """Say whether the corpus is there, of this text and these settings; refuse to change another.

    False if the text has to be read to know.
    """
    if not (folder / SUMMARY).is_file():
        return False
    summary = read_summary(folder)
    wanted = {"inputs": inputs, "settings": _describe_settings(settings)}
    for name, value in wanted.items():
        if summary[name] != value:
            raise changed(folder, f"the {name} differ")
    made = (folder / SUMMARY).stat().st_mtime
    return all(
        isinstance(text.source, Path) and text.source.stat().st_mtime < made for text in texts
    )


def _make_missing_shards(
    chunks: Iterator[Chunk], maker: ShardMaker, *, num_processes: int, progress: "_Progress"
) -> list[ShardFacts]:
    """Make the shards that an earlier run has not made; return what is known of all, in order."""
    facts: dict[int, ShardFacts] = {}

    def find_missing() -> Iterator[Chunk]:
        for chunk in chunks:
            made = _find_shard(chunk, maker)
            if made is None:
                yield chunk
            else:
                facts[chunk.number] = made
                progress.note_shard(chunk, made, is_new=False)

    missing = find_missing()
    first_two = list(islice(missing, 2))
    if len(first_two) < 2:
        num_processes = 1  # a process takes longer to start than a small text to read
    for chunk, made in make_shards(chain(first_two, missing), maker, num_processes=num_processes):
        facts[chunk.number] = made
        progress.note_shard(chunk, made, is_new=True)
    if shard_path(maker.folder, len(facts)).exists():
        raise changed(maker.folder, "there is less text than before")
    return [facts[number] for number in range(len(facts))]


def _find_shard(chunk: Chunk, maker: ShardMaker) -> ShardFacts | None:
    """Return what is known of a chunk's shard; None if it has to be made."""
    path = shard_path(maker.folder, chunk.number)
    if not path.exists():
        return None
    try:
        facts = Shard(path).facts
    except DataError:
        return None
    if (facts.source_number, facts.source_bytes, facts.source_crc32) != (
        chunk.source_number,
        len(chunk.excerpt.data),
        chunk.checksum,
    ):
        place = f"{chunk.excerpt.name}, from line {chunk.excerpt.first_line}"
        raise changed(maker.folder, f"{place} on, is not what it was")
    is_refused = facts.num_bad and maker.bad_bytes is BadBytesPolicy.REFUSE
    return None if is_refused else facts


def _check_text(facts: Iterable[ShardFacts], texts: Sequence[Source]) -> None:
    if not any(
        shard.num_sentences and not texts[shard.source_number].is_heldout for shard in facts
    ):
        names = ", ".join(text.name for text in texts if not text.is_heldout)
        raise _NoTextError(f"there are no sentences in {names}; name files that hold text")


def _finish(
    folder: Path,
    facts: list[ShardFacts],
    words: list[str] | None,
    *,
    inputs: list[dict[str, Any]],
    settings: PrepareSettings,
    progress: "_Progress",
) -> None:
    """Choose the vocabulary and the held-out documents, and write all but the shards."""
    num_passes = 3 if words is None else 2
    shards = ShardRow(
        folder=folder,
        num_shards=len(facts),
        on_shard=progress.count_shards(num_passes * len(facts)),
    )
    num_train = sum(entry["part"] == "train" for entry in inputs)
    split = choose_split(
        shards,
        document_sentences=settings.document_sentences,
        seed=settings.seed,
        share=settings.heldout if num_train == len(inputs) else 0.0,
        first_heldout_source=num_train,
    )
    max_missed = 0
    if words is None:
        counts = count_words(shards, split, max_types=settings.max_types)
        words = counts.choose(max_words=settings.max_words, min_count=settings.min_count)
        max_missed = counts.max_missed
    totals = write_index(shards, split, words)
    files = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": hash_file(folder / name)}
        for name in FILES
    }
    checksums = [*(entry["sha256"] for entry in files.values()), *(shard.sha256 for shard in facts)]
    bad_bytes = _describe_bad_bytes(facts, inputs)
    summary = {
        "fingerprint": hashlib.sha256("\n".join(map(str, checksums)).encode()).hexdigest(),
        "settings": _describe_settings(settings),
        "inputs": inputs,
        "vocabulary_size": len(words),
        "parts": {part: _describe_part(part_totals) for part, part_totals in totals.items()},
        "bad_bytes": bad_bytes,
        "notes": _make_notes(totals, settings, bad_bytes=bad_bytes, max_missed=max_missed),
        "files": files,
        "shards": [asdict(shard) for shard in facts],
    }
    remove_leftovers(folder)
    write_json(folder / SUMMARY, summary)


def _describe_part(totals: PartTotals) -> dict[str, Any]:
    share = totals.outside / totals.tokens if totals.tokens else 0.0
    return {**asdict(totals), "outside_share": round(share, 6)}


def _describe_bad_bytes(
    facts: Sequence[ShardFacts], inputs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    places = (
        f"{inputs[shard.source_number]['name']}, line {line}: byte 0x{byte:02x}"
        for shard in facts
        for line, byte in shard.bad_places
    )
    return {
        "replaced": sum(shard.num_bad for shard in facts),
        "first_places": list(islice(places, MAX_BAD_PLACES)),
    }


def _make_notes(
    totals: dict[str, PartTotals],
    settings: PrepareSettings,
    *,
    bad_bytes: dict[str, Any],
    max_missed: int,
) -> list[str]:
    """Return what the user should know, a sentence each."""
    notes = []
    if not totals["heldout"].documents and settings.heldout:
        notes.append(
            "nothing is held out, for the text is one document; separate documents by blank lines, "
            "end them with --document-sentences, or give --heldout-text"
        )
    if bad_bytes["replaced"]:
        places = "; ".join(bad_bytes["first_places"])
        notes.append(
            f"{bad_bytes['replaced']:,} times bytes that are not UTF-8 were replaced by U+FFFD, "
            f"first in {places}"
        )
    if max_missed:
        notes.append(
            f"there are more than {settings.max_types:,} distinct tokens; the rarest were not "
            f"counted all the time, so that words occurring up to {max_missed:,} times more often "
            "than --min-count may be missing from the vocabulary"
        )
    return notes


class _Progress:
    """Adds up what is done, and tells it."""

    def __init__(self, inputs: Sequence[dict[str, Any]], tell: OnProgress | None) -> None:
        sizes = [entry["size"] for entry in inputs]
        self._before = [sum(size or 0 for size in sizes[:place]) for place in range(len(sizes))]
        self._total = None if None in sizes else sum(sizes)
        self._tell = tell
        self._num_bytes = 0
        self._num_tokens = 0
        self._num_new_tokens = 0

    def note_shard(self, chunk: Chunk, facts: ShardFacts, *, is_new: bool) -> None:
        """Take note of a shard that is there."""
        place = self._before[chunk.source_number] + chunk.position
        self._num_bytes = max(self._num_bytes, place)
        self._num_tokens += facts.num_tokens
        self._num_new_tokens += facts.num_tokens if is_new else 0
        self._report("reading", self._num_bytes, self._total)

    def count_shards(self, num_shards: int) -> Callable[[], None]:
        """Return what is to be called for every shard that is indexed."""
        numbers = iter(range(1, num_shards + 1))
        return lambda: self._report("indexing", next(numbers, num_shards), num_shards)

    def _report(self, stage: str, num_done: int, num_total: int | None) -> None:
        if self._tell is not None:
            self._tell(
                PrepareProgress(
                    stage=stage,
                    num_done=num_done,
                    num_total=num_total,
                    num_tokens=self._num_tokens,
                    num_new_tokens=self._num_new_tokens,
                )
            )

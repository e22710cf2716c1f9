"""Turn text files into a prepared corpus: shards, a vocabulary and held-out text.

Several processes turn chunks of text into shards; then the words are counted, shard by shard, and
the vocabulary is chosen. A killed run keeps its finished shards when it is resumed. The files
depend only on the text and the settings.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from elmore.corpus.corpus import Corpus, open_corpus
from elmore.corpus.describe import (
    describe_corpus,
    describe_inputs,
    describe_job,
    describe_settings,
)
from elmore.corpus.folder import (
    CORPUS,
    SUMMARY,
    check_job,
    has_shards,
    hold_folder,
    remove_leftovers,
    shard_path,
)
from elmore.corpus.index import ShardSequence, count_words, write_index
from elmore.corpus.progress import OnProgress, ProgressCounter
from elmore.corpus.settings import BadBytesPolicy, PrepareSettings
from elmore.corpus.shard_workers import ShardMaker, count_cores, make_shards
from elmore.corpus.shards import Shard, ShardFacts
from elmore.corpus.split import choose_split
from elmore.corpus.summary import read_summary, write_summary
from elmore.corpus.text_chunks import AnySource, Chunk, Source, make_sources, read_chunks
from elmore.corpus.word_counts import MARKS
from elmore.errors import DataError
from elmore.files.owned_folder import ChangedJobError, find_changes
from elmore.settings import check_range, read_path
from elmore.text.files import TextForm
from elmore.text.language import Language, warn_if_unsegmented
from elmore.text.vocabulary import read_word_list

_BYTES_LOOKED_AT = 1 << 16

MAX_PROCESSES = 1 << 12


def prepare_corpus(
    sources: AnySource | Iterable[AnySource],
    folder: str | os.PathLike[str],
    *,
    settings: PrepareSettings | None = None,
    heldout_sources: AnySource | Iterable[AnySource] = (),
    num_processes: int | None = None,
    restart: bool = False,
    on_progress: OnProgress | None = None,
) -> Corpus:
    """Prepare the text of files or binary streams; after an interruption, call it again to resume.

    By default there is one process per core. Each imports the calling script again, so the script
    must do its work under `if __name__ == "__main__"`.
    """
    settings, folder = settings or PrepareSettings(), read_path("the corpus folder", folder)
    if num_processes is not None:
        check_range("num_processes", num_processes, 1, MAX_PROCESSES)
    texts = make_sources(sources, heldout_sources, form=settings.form)
    inputs = describe_inputs(texts)
    words = None if settings.vocabulary is None else read_word_list(settings.vocabulary)
    progress = ProgressCounter(inputs, on_progress)
    with hold_folder(folder, restart=restart):
        if not _is_done(folder, texts, inputs=inputs, settings=settings):
            check_job(folder, describe_job(inputs, settings))
            remove_leftovers(folder)
            try:
                facts = _make_missing_shards(
                    folder, texts, settings, num_processes=num_processes, progress=progress
                )
            except DataError as error:
                if isinstance(error, _NoTextError) or not has_shards(folder):
                    CORPUS.clear(folder)
                raise
            _finish(folder, facts, words, inputs=inputs, settings=settings, progress=progress)
    return open_corpus(folder)


class _NoTextError(DataError):
    """The input files contain no sentences."""


def _is_done(
    folder: Path,
    texts: Sequence[Source],
    *,
    inputs: list[dict[str, Any]],
    settings: PrepareSettings,
) -> bool:
    """Return whether this corpus is finished; raise an error if the folder has a different one.

    False if the text must be read to know.
    """
    if not (folder / SUMMARY).is_file():
        return False
    summary = read_summary(folder)
    wanted = {"inputs": inputs, "settings": describe_settings(settings)}
    if changes := find_changes({name: summary[name] for name in wanted}, wanted):
        raise ChangedJobError(folder, list(changes.values()))
    made = (folder / SUMMARY).stat().st_mtime
    return all(
        isinstance(text.source, Path) and text.source.stat().st_mtime < made for text in texts
    )


def _make_missing_shards(
    folder: Path,
    texts: Sequence[Source],
    settings: PrepareSettings,
    *,
    num_processes: int | None,
    progress: ProgressCounter,
) -> list[ShardFacts]:
    """Make the shards that an earlier run has not made; return the facts of all, in order."""
    maker = ShardMaker(
        folder=folder,
        language=Language(settings.language),
        bad_bytes=BadBytesPolicy(settings.bad_bytes),
    )
    facts: dict[int, ShardFacts] = {}

    def find_missing() -> Iterator[Chunk]:
        for chunk in read_chunks(texts, chunk_bytes=settings.chunk_bytes, language=maker.language):
            made = _find_shard(chunk, maker)
            if made is None:
                yield chunk
            else:
                facts[chunk.number] = made
                progress.note_shard(chunk, made, is_new=False)

    missing = find_missing()
    first_two = list(islice(missing, 2))
    if first_two and maker.language is Language.EN:
        _warn_if_unsegmented(first_two[0])
    # Starting processes takes longer than reading a small text.
    num_workers = (num_processes or count_cores()) if len(first_two) == 2 else 1
    chunks = chain(first_two, missing)
    for chunk, made in make_shards(chunks, maker, num_processes=num_workers):
        facts[chunk.number] = made
        progress.note_shard(chunk, made, is_new=True)
    if shard_path(folder, len(facts)).exists():
        raise ChangedJobError(folder, ["the text is shorter than before"])
    if not any(shard.num_sentences and not shard.is_heldout for shard in facts.values()):
        raise _no_text(texts)
    return [facts[number] for number in range(len(facts))]


def _warn_if_unsegmented(chunk: Chunk) -> None:
    for part in chunk.excerpts:
        if part.form in (TextForm.RAW, TextForm.WRAPPED):
            warn_if_unsegmented(part.excerpt.data[:_BYTES_LOOKED_AT].decode(errors="ignore"))


def _find_shard(chunk: Chunk, maker: ShardMaker) -> ShardFacts | None:
    """Return the facts of a chunk's shard, or None if it has to be made."""
    path = shard_path(maker.folder, chunk.number)
    if not path.exists():
        return None
    try:
        shard = Shard(path)
    except DataError:
        return None
    facts = shard.facts
    if (facts.source_bytes, facts.source_crc32) != (chunk.num_bytes, chunk.checksum):
        excerpt = chunk.excerpts[0].excerpt
        changed = f"{excerpt.name} has changed, from line {excerpt.first_line} on"
        raise ChangedJobError(maker.folder, [changed])
    is_refused = facts.num_bad and maker.bad_bytes is BadBytesPolicy.REFUSE
    return None if is_refused or shard.find_damage() is not None else facts


def _no_text(texts: Sequence[Source]) -> _NoTextError:
    names = [text.name for text in texts if not text.is_heldout]
    shown = ", ".join([*names[:3], *(["..."] if len(names) > 3 else [])])
    return _NoTextError(f"{shown}: no sentences found; give files that contain text")


def _finish(
    folder: Path,
    facts: list[ShardFacts],
    words: list[str] | None,
    *,
    inputs: list[dict[str, Any]],
    settings: PrepareSettings,
    progress: ProgressCounter,
) -> None:
    """Choose the held-out documents and the vocabulary, and write all files except the shards."""
    has_to_count = words is None or settings.extends
    num_passes = 3 if has_to_count else 2
    shards = ShardSequence(
        folder=folder,
        num_shards=len(facts),
        on_shard=progress.count_shards(num_passes * len(facts)),
    )
    has_heldout_text = any(entry["part"] == "heldout" for entry in inputs)
    split = choose_split(
        shards,
        document_sentences=settings.document_sentences,
        seed=settings.seed,
        share=0.0 if has_heldout_text else settings.heldout,
    )
    max_missed = 0
    if has_to_count:
        counts = count_words(shards, split, max_types=settings.max_types)
        words = counts.choose(
            max_words=settings.max_words, min_count=settings.min_count, first=words or MARKS
        )
        max_missed = counts.max_missed
    assert words is not None
    totals = write_index(shards, split, words)
    summary = describe_corpus(
        folder,
        facts,
        inputs=inputs,
        settings=settings,
        totals=totals,
        num_words=len(words),
        max_missed=max_missed,
    )
    remove_leftovers(folder)
    write_summary(folder, summary)

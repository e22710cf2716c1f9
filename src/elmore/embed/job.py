"""Embed a corpus into a vector file; after a kill, the same call resumes."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.arguments import explain_calls
from elmore.config import VECTORS_IN_FILES, Precision, StatePolicy, read_precision
from elmore.embed.background_writer import BackgroundWriter, FilePart
from elmore.embed.chunks import ChunkFolder, digest_tokens
from elmore.embed.embedder import Embedder, load
from elmore.embed.layer_choice import Layers
from elmore.embed.other_names import OTHER_ARGUMENTS
from elmore.embed.output_choice import OutputChoice, Reducer, read_output_choice
from elmore.embed.pooling import Pool
from elmore.embed.progress import show_progress
from elmore.embed.projection import find_projection
from elmore.embed.sentence_notes import SentenceNotes
from elmore.embed.unit import Unit
from elmore.embed.vector_file import (
    DTYPES,
    SentenceVectors,
    VectorHeader,
    check_vector_path,
    write_vector_file,
)
from elmore.errors import ConfigError, DataError
from elmore.model.state import BiLMState
from elmore.settings import read_path
from elmore.text.files import TextForm
from elmore.text.inputs import GivenSentence, open_input

# What a kill can cost: the work of this many bytes or seconds, whichever comes first.
CHUNK_BYTES = 16 << 20
CHUNK_SECONDS = 10.0
# What is left to be stored on disk at the end is at most about this much.
FLUSH_BYTES = 32 << 20


@dataclass(frozen=True, kw_only=True)
class JobReport:
    """What a finished job did."""

    out: str
    num_sentences: int
    num_tokens: int
    num_resumed_sentences: int
    seconds: float
    model: str
    model_hash: str
    state: str
    layers: str
    dtype: str
    precision: str
    kernel: str | None


@explain_calls(OTHER_ARGUMENTS)
def embed_to_file(
    embedder: Embedder | str | Path,
    sentences: str | Path | Iterable[GivenSentence],
    out: str | Path,
    *,
    form: TextForm | str | None = None,
    layers: Layers | None = None,
    dtype: Precision | str = Precision.F32,
    compress: bool = False,
    pool: Pool | str | None = None,
    per: Unit | str = Unit.SENTENCE,
    words: str | Path | Iterable[str] | None = None,
    dim: int | None = None,
    restart: bool = False,
    progress: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> JobReport:
    """Embed a text file or a list of sentences into a .h5, .parquet or .npz file.

    `embedder` is what `load` returns, or the path or hub id of a model. `sentences` is the path of
    a text file, which is read as `form` says ("raw", "wrapped", "tokenized", "lines", "conllu" or
    "fasta": docs/reference/text.md), or sentences as `embed` takes them. The vector file records
    the line that each sentence starts on, or its position in the list, from 1.

    `dtype` is the format of the numbers: "f32", "f16" or, in .parquet files, "int8" with a scale
    per vector. With `pool` ("mean", "max", "last" or "similarity"), a sentence has one vector, and
    its only token is the whole sentence; with `per="document"`, so has a document. `words` (a list,
    or the path of a file with one per line) keeps the vectors of these words only. `dim` projects
    vectors to fewer dimensions; `fit_projection` makes a model that can do that.

    If the call is interrupted, repeat it to resume: finished parts wait in `<out>.partial/`.
    `restart` deletes them. `progress` shows a progress bar; `on_progress` is called with the
    sentences and tokens done so far.

    ```python
    embedder = elmore.load()
    elmore.embed_to_file(embedder, "reviews.txt", "reviews.h5", form="lines")
    ```
    """
    out = read_path("out", out)
    check_vector_path(out, dtype=DTYPES[read_precision("dtype", dtype, VECTORS_IN_FILES)])
    if not isinstance(embedder, Embedder):
        embedder = load(embedder)
    choice = choose_output(embedder, layers=layers, pool=pool, per=per, words=words, dim=dim)
    notes = SentenceNotes(choice, state=embedder.state)
    given = open_input(
        sentences,
        form=form,
        language=embedder.language,
        keeps_document_ends=embedder.state is StatePolicy.DOCUMENT or choice.pools_documents,
    )
    parsed = notes.read(given, language=embedder.language)
    header = describe_vectors(embedder, layers=layers, dtype=dtype, choice=choice)
    parts = out.with_name(f"{out.name}.partial")
    started = time.monotonic()
    counter = _Counter(on_progress)
    with (
        ChunkFolder(parts, job=asdict(header), restart=restart) as chunks,
        _removing_if_empty(chunks),
        show_progress(None, is_shown=progress) as advance,
        ExitStack() as stack,
    ):
        num_resumed = chunks.num_sentences
        rest = _skip_done(parsed, chunks, counter)
        advance(num_resumed)
        windows = embedder.windows(
            rest,
            layers=choice.find_layers(layers),
            state=_to_state(chunks.state, embedder),
            num_before=num_resumed,
        )
        # Only now, because it needs what was noted about the sentences that are done.
        writer = stack.enter_context(
            BackgroundWriter(
                chunks,
                lambda stored: write_vector_file(
                    out,
                    notes.attach(stored),
                    header=header,
                    compress=compress,
                    flush_bytes=FLUSH_BYTES,
                ),
            )
        )
        reducer = Reducer(choice)
        pending: list[SentenceVectors] = []
        read: list[list[str]] = []  # whose entries are in `pending`
        unfinished: list[list[str]] = []  # of a document that is pooled
        num_bytes, last_added = 0, time.monotonic()
        state: BiLMState | None = None
        for window in windows:
            # After a document, the state is the initial one.
            state = None if choice.pools_documents else window.state
            for tokens, found in zip(window.sentences, window.vectors, strict=True):
                entries = reducer.reduce(tokens, found)
                pending += entries
                num_bytes += sum(entry.vectors.nbytes for entry in entries)
                unfinished.append(list(tokens))
                if not (choice.pools_documents and tokens):
                    read += unfinished
                    unfinished = []
                counter.count(len(tokens))
            advance(len(window.vectors))
            if num_bytes >= CHUNK_BYTES or time.monotonic() - last_added >= CHUNK_SECONDS:
                writer.add(FilePart(entries=pending, read=read, state=_from_state(state)))
                pending, read, num_bytes, last_added = [], [], 0, time.monotonic()
        pending += reducer.finish()
        writer.add(FilePart(entries=pending, read=read + unfinished, state=_from_state(state)))
        writer.finish()
        chunks.remove()
    return JobReport(
        out=str(out),
        num_sentences=counter.num_sentences,
        num_tokens=counter.num_tokens,
        num_resumed_sentences=num_resumed,
        seconds=time.monotonic() - started,
        model=header.model,
        model_hash=header.model_hash,
        state=header.state,
        layers=header.layers,
        dtype=header.dtype,
        precision=header.precision,
        kernel=header.kernel,
    )


def choose_output(
    embedder: Embedder,
    *,
    layers: Layers | None,
    pool: Pool | str | None,
    per: Unit | str,
    words: str | Path | Iterable[str] | None,
    dim: int | None,
) -> OutputChoice:
    """Check what to keep, and find what is stored for it with the model."""
    is_similarity = pool == Pool.SIMILARITY
    if is_similarity and dim is not None:
        raise ConfigError(
            f"dim is {dim!r:.60}, but pool similarity has a width of its own; leave out dim"
        )
    choice = read_output_choice(
        pool=pool,
        per=per,
        words=words,
        projection=None if dim is None else find_projection(embedder, layers=layers, dim=dim),
        similarity=embedder.find_similarity(layers) if is_similarity else None,
    )
    if choice.pools_documents and embedder.state is StatePolicy.STREAM:
        raise ConfigError(
            "under state policy stream a text has no documents; pool per sentence, or use the "
            "policy document"
        )
    return choice


def describe_vectors(
    embedder: Embedder,
    *,
    layers: Layers | None,
    dtype: Precision | str = Precision.F32,
    choice: OutputChoice | None = None,
) -> VectorHeader:
    """Return what a vector file says of how it was made."""
    kept = OutputChoice() if choice is None else choice
    chosen = embedder.choose_layers(kept.find_layers(layers))
    projection = kept.similarity or kept.projection
    return VectorHeader(
        model=embedder.model.config.about.name,
        model_hash=embedder.model.fingerprint(),
        state=str(embedder.state),
        layers=str(chosen),
        dtype=DTYPES[read_precision("dtype", dtype, VECTORS_IN_FILES)],
        num_layers=None if kept.similarity else chosen.num_kept,
        vector_dim=embedder.vector_dim if projection is None else projection.dim,
        precision=str(embedder.precision),
        kernel=embedder.kernel,
        pool=None if kept.pool is None else str(kept.pool),
        per=str(kept.per) if kept.pools_documents else None,
        words=kept.words_hash,
        projection=None if projection is None else projection.fingerprint,
    )


@contextmanager
def _removing_if_empty(chunks: ChunkFolder) -> Iterator[None]:
    """Leave no folder behind when a job fails before its first part is done."""
    try:
        yield
    except BaseException:
        if chunks.num_sentences == 0:
            chunks.remove()
        raise


class _Counter:
    def __init__(self, on_progress: Callable[[int, int], None] | None) -> None:
        self.num_sentences = 0
        self.num_tokens = 0
        self._on_progress = on_progress

    def skip(self, num_tokens: int) -> None:
        self.num_sentences += 1
        self.num_tokens += num_tokens

    def count(self, num_tokens: int) -> None:
        self.skip(num_tokens)
        if self._on_progress is not None:
            self._on_progress(self.num_sentences, self.num_tokens)


def _skip_done(
    sentences: Iterator[list[str]], chunks: ChunkFolder, counter: _Counter
) -> Iterator[list[str]]:
    """Pass over the sentences that an earlier run has done, if they are still the same ones."""
    digest = ""
    for tokens in islice(sentences, chunks.num_sentences):
        digest = digest_tokens(digest, tokens)
        counter.skip(len(tokens))
    if digest != chunks.digest:
        raise DataError(
            f"{chunks.folder} holds the beginning of other text than is given now; give the same "
            "text to resume, or pass --restart to start over"
        )
    return sentences


def _from_state(state: BiLMState | None) -> dict[str, NDArray[Any]] | None:
    if state is None:
        return None
    return {"hidden": _to_array(state.hidden), "cell": _to_array(state.cell)}


def _to_array(tensor: Tensor) -> NDArray[Any]:
    # numpy has no bfloat16; single precision holds each of its numbers.
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy()


def _to_state(arrays: dict[str, NDArray[Any]] | None, embedder: Embedder) -> BiLMState | None:
    if arrays is None:
        return None
    state = BiLMState(
        hidden=torch.from_numpy(np.array(arrays["hidden"])),
        cell=torch.from_numpy(np.array(arrays["cell"])),
    )
    return state.like(embedder.initial_state(len(state)))

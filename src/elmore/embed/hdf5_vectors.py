"""Vectors in HDF5 as in AllenNLP and bilm-tf: one dataset per sentence, named by its number.

Datasets of records with ids, as in FASTA, are named by the ids.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from elmore.embed.optional_columns import OPTIONAL, read_optional, write_optional
from elmore.embed.token_escapes import join_escaped, split_escaped
from elmore.embed.vector_file import SentenceVectors, VectorHeader, name_array
from elmore.errors import DataError

# `sentence_to_index` is a single JSON text, so all sentences must fit in memory.
MAX_INDEXED_CHARACTERS = 16_000_000
SENTENCES_PER_BLOCK = 1024


def write(
    path: Path, sentences: Iterable[SentenceVectors], *, header: VectorHeader, compress: bool
) -> None:
    """Write every sentence to a new file at `path`."""
    index = _SentenceIndex()
    with _create(path) as (file, watched):
        file.attrs["elmore"] = header.to_json()
        texts = _Column(file, "sentences", dtype=h5py.string_dtype())
        lines = _Column(file, "line", dtype="int64")
        others: dict[str, _Column] = {}  # that not every file has
        create = _create_compressed if compress else _Plain(dtype=header.dtype).create
        for number, sentence in enumerate(sentences):
            name = str(number)
            for column, text in write_optional(sentence).items():
                if column not in others:
                    others[column] = _Column(file, column, dtype=h5py.string_dtype())
                others[column].append(text)
            if sentence.key is not None:
                name = name_array(sentence.key)
            create(file, name, sentence.vectors)
            watched.check()
            index.add(sentence.tokens, number=number)
            texts.append(join_escaped(sentence.tokens))
            lines.append(sentence.line or 0)
        texts.finish()
        lines.finish()
        for other in others.values():
            other.finish()
        if "key" not in others and index.is_complete:  # which has numbers
            file.create_dataset(
                "sentence_to_index", data=[index.to_json()], dtype=h5py.string_dtype()
            )


def read(path: Path) -> Iterator[SentenceVectors]:
    """Read the sentences in order, also from files of AllenNLP and bilm-tf."""
    with h5py.File(path, "r") as file:
        yield from _read_own(file) if "elmore" in file.attrs else _read_foreign(file)


def read_header(path: Path) -> VectorHeader:
    """Read the root attribute `elmore`."""
    with h5py.File(path, "r") as file:
        if "elmore" not in file.attrs:
            raise DataError(
                f"{path} was not written by elmore and does not say how it was made; "
                "read its vectors without the header"
            )
        return VectorHeader.from_json(file.attrs["elmore"])


class _WatchedFile:
    """A file that remembers its first write error and ignores all later writes.

    HDF5 writes small datasets when they are closed, where h5py prints errors instead of raising
    them. So a disk that is full for a moment would leave unnoticed holes in the file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.error: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, content: memoryview) -> int:
        if self.error is None:
            try:
                self.file.write(content)
                self.file.flush()
            except OSError as error:
                self.error = error
        return len(content)

    def check(self) -> None:
        if self.error is not None:
            raise self.error


@contextmanager
def _create(path: Path) -> Iterator[tuple[Any, _WatchedFile]]:
    with path.open("w+b") as output:
        watched = _WatchedFile(output)
        try:
            # track_order: h5py otherwise lists "10" before "2".
            with h5py.File(watched, "w", track_order=True) as file:
                yield file, watched
        finally:
            # This also replaces any error that h5py raised because of it.
            watched.check()


def _create_compressed(file: Any, name: str, vectors: NDArray[Any]) -> None:
    # HDF5 cannot divide an empty dataset into chunks, and only chunks are compressed.
    options = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
    file.create_dataset(name, data=vectors, **(options if vectors.size else {}))


class _Plain:
    """Creates what `create_dataset` would, in a third of the time: types are made only once."""

    def __init__(self, *, dtype: str) -> None:
        self.type = h5py.h5t.py_create(np.dtype(dtype), logical=True)
        self.settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        self.settings.set_obj_track_times(False)

    def create(self, file: Any, name: str, vectors: NDArray[Any]) -> None:
        space = h5py.h5s.create_simple(vectors.shape)
        dataset = h5py.h5d.create(file.id, name.encode(), self.type, space, self.settings)
        if vectors.size:
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, vectors, self.type)


class _SentenceIndex:
    """AllenNLP's `sentence_to_index`, as long as the text stays small."""

    def __init__(self) -> None:
        self.first_numbers: dict[str, str] = {}
        self.num_characters = 0

    @property
    def is_complete(self) -> bool:
        return self.num_characters <= MAX_INDEXED_CHARACTERS

    def add(self, tokens: list[str], *, number: int) -> None:
        if not self.is_complete:
            return
        text = " ".join(tokens)
        self.num_characters += len(text) + 1 + bool(tokens)
        self.first_numbers.setdefault(text, str(number))
        if not self.is_complete:
            self.first_numbers.clear()

    def to_json(self) -> str:
        # ASCII, so NUL and lone surrogates are JSON escapes that HDF5 can hold.
        return json.dumps(self.first_numbers)


class _Column:
    """A dataset with one value per sentence, written in blocks."""

    def __init__(self, file: Any, name: str, *, dtype: Any) -> None:
        self.file = file
        self.name = name
        self.pending: list[str | int] = []
        self.dataset = file.create_dataset(
            f"unfinished {name}",
            shape=(0,),
            maxshape=(None,),
            chunks=(SENTENCES_PER_BLOCK,),
            dtype=dtype,
        )

    def append(self, value: str | int) -> None:
        self.pending.append(value)
        if len(self.pending) == SENTENCES_PER_BLOCK:
            self._store()

    def finish(self) -> None:
        """Store the rest; renamed now, it comes after the sentences when names are listed."""
        self._store()
        self.file.move(f"unfinished {self.name}", self.name)

    def _store(self) -> None:
        num_stored = len(self.dataset)
        self.dataset.resize((num_stored + len(self.pending),))
        if self.pending:
            self.dataset[num_stored:] = self.pending
        self.pending = []


def _read_own(file: Any) -> Iterator[SentenceVectors]:
    sentences = file["sentences"]
    # A sentence that is called "key" would be an array of floats.
    others = [
        name
        for name in OPTIONAL
        if name in file and h5py.check_string_dtype(file[name].dtype) is not None
    ]
    for start in range(0, len(sentences), SENTENCES_PER_BLOCK):
        block = slice(start, start + SENTENCES_PER_BLOCK)
        texts = sentences[block]
        lines = file["line"][block] if "line" in file else [0] * len(texts)
        columns = {name: file[name][block] for name in others}
        for number, (text, line) in enumerate(zip(texts, lines, strict=True), start=start):
            facts = read_optional(
                {name: column[number - start].decode() for name, column in columns.items()}
            )
            key = facts.get("key")
            yield SentenceVectors(
                tokens=split_escaped(text.decode()),
                vectors=file[str(number) if key is None else name_array(key)][...],
                line=int(line) or None,
                **facts,
            )


def _read_foreign(file: Any) -> Iterator[SentenceVectors]:
    numbers = sorted(int(name) for name in file if name.isdecimal())
    if not numbers:
        raise DataError(
            f"{file.filename} has no datasets named by sentence number (0, 1, ...); "
            "give a file written by elmore, by AllenNLP's elmo command or by bilm-tf"
        )
    sentences = _read_index(file)
    for number in numbers:
        vectors = file[str(number)][...]
        tokens = sentences.get(number, "").split()
        num_tokens = vectors.shape[-2]
        if len(tokens) != num_tokens:
            # No text for this number: AllenNLP indexes only the last of several equal sentences.
            tokens = [""] * num_tokens
        yield SentenceVectors(tokens=tokens, vectors=vectors)


def _read_index(file: Any) -> dict[int, str]:
    if "sentence_to_index" not in file:
        return {}
    sentence_to_index = json.loads(file["sentence_to_index"][0])
    return {int(number): sentence for sentence, number in sentence_to_index.items()}

"""Embed one shard in whichever process: read its text, write its part, describe the part."""

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder
from elmore.embed.many_files.output_folder import open_folder
from elmore.embed.many_files.part_names import name_part, name_sidecar
from elmore.embed.many_files.shards import TextShard, find_bad_files, read_shard
from elmore.embed.output_choice import OutputChoice, Reducer
from elmore.embed.sentence_notes import SentenceNotes
from elmore.embed.vector_file import SentenceVectors, VectorHeader, write_vector_file
from elmore.errors import ConfigError, DataError, DataWarning
from elmore.kernels.library import choosing_kernel
from elmore.text.inputs import GivenSentence

# Called with the tokens and characters of the sentences that were read since the last call.
OnTokens = Callable[[int, int], None]


@dataclass(kw_only=True)
class ShardWorker:
    """What a process needs to embed shards. It is pickled without weights, which are loaded once.

    `threads` is torch's number of threads in processes that this worker is sent to.
    """

    pickled_embedder: bytes
    folder: str
    suffix: str
    layers: Any
    choice: OutputChoice
    header: VectorHeader
    settings: dict[str, Any]
    compress: bool = False
    threads: int | None = 1
    kernel: str | None = None  # the value of ELMORE_KERNEL
    elmore_version: str = ""
    _embedder: Embedder | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the loaded embedder behind."""
        return {**self.__dict__, "_embedder": None}

    def run(self, shard: TextShard, *, on_tokens: OnTokens | None = None) -> dict[str, Any]:
        """Embed a shard and publish its part; return the description that is stored with it."""
        # Without packed weights, a network chooses its kernel whenever it is called. What is odd in
        # the text is noticed by the process that divides it.
        with choosing_kernel(self.kernel), warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return self._run(shard, on_tokens)

    def _run(self, shard: TextShard, on_tokens: OnTokens | None) -> dict[str, Any]:
        counter = _Counter(on_tokens)
        try:
            return self._write(shard, counter, bad={})
        except DataError as error:
            if is_write_error(error):
                raise
            embedder = self._load()
            bad = find_bad_files(
                shard,
                language=embedder.language,
                max_sentence_tokens=embedder.max_sentence_tokens,
            )
            if not bad:
                raise
            if bad.keys() == {span.source for span in shard.spans}:
                first, *others = bad.values()
                too = " (and none of the other texts of this part can be embedded)"
                raise DataError(first + too * bool(others)) from None
        # Small files share a shard: a bad one must not cost the others their vectors.
        counter.take_back()
        return self._write(shard, counter, bad=bad)

    def _write(
        self, shard: TextShard, counter: "_Counter", *, bad: Mapping[str, str]
    ) -> dict[str, Any]:
        """Embed and publish a shard without its `bad` files."""
        embedder = self._load()
        folder = open_folder(self.folder)
        name = name_part(shard, settings=self.settings, suffix=self.suffix)
        sentences = read_shard(
            shard,
            language=embedder.language,
            keeps_document_ends=(
                embedder.state is StatePolicy.DOCUMENT or self.choice.pools_documents
            ),
            without=bad,
        )
        entries = stream_entries(
            embedder, sentences, layers=self.layers, choice=self.choice, on_sentence=counter.count
        )
        with folder.attempt(name) as path:
            write_vector_file(path, entries, header=self.header, compress=self.compress)
            num_bytes = path.stat().st_size
        counter.flush()
        facts = {
            "part": name,
            "number": shard.number,
            "num_bytes": num_bytes,
            "num_sentences": counter.num_sentences,
            "num_tokens": counter.num_tokens,
            "input": {
                "sha256": shard.sha256,
                "num_bytes": shard.num_bytes,
                "spans": [asdict(span) for span in shard.spans],
            },
            "bad": dict(bad),
            "settings": self.settings,
            "kernel": self.header.kernel,
            "elmore": self.elmore_version,
        }
        folder.write_json(name_sidecar(name), facts)
        return facts

    def try_run(self, shard: TextShard, *, on_tokens: OnTokens | None = None) -> str | None:
        """Embed a shard; return the reason if its text cannot be embedded.

        Other errors, such as a full disk, are raised: they would stop every shard.
        """
        try:
            self.run(shard, on_tokens=on_tokens)
        except DataError as error:
            if is_write_error(error):
                raise
            return str(error)
        return None

    def _load(self) -> Embedder:
        """Return the embedder, loaded once per process."""
        if self._embedder is None:
            if self.threads is not None:
                torch.set_num_threads(self.threads)
            embedder: Embedder = pickle.loads(self.pickled_embedder)
            if embedder.kernel != self.header.kernel:
                raise ConfigError(
                    f"this machine computes with the kernel {embedder.kernel}, but the job was "
                    f"started with {self.header.kernel}, and kernels differ in the last digits of "
                    "a vector; choose one that all machines have: --kernel avx2 or torch"
                )
            self._embedder = embedder
        return self._embedder


def is_write_error(error: DataError) -> bool:
    """Return whether an error is due to the storage and not to the text."""
    return isinstance(error.__cause__, OSError)


def stream_entries(
    embedder: Embedder,
    sentences: Iterable[GivenSentence],
    *,
    layers: Any,
    choice: OutputChoice,
    on_sentence: Callable[[list[str]], None],
) -> Iterator[SentenceVectors]:
    """Embed sentences and yield what is stored of them."""
    notes, reducer = SentenceNotes(choice, state=embedder.state), Reducer(choice)

    def reduce() -> Iterator[SentenceVectors]:
        parsed = notes.read(sentences, language=embedder.language)
        for window in embedder.windows(parsed, layers=layers):
            for tokens, vectors in zip(window.sentences, window.vectors, strict=True):
                on_sentence(list(tokens))
                yield from reducer.reduce(tokens, vectors)
        yield from reducer.finish()

    return notes.attach(reduce())


class _Counter:
    """Counts sentences and tokens, and reports them now and then."""

    def __init__(self, on_tokens: OnTokens | None) -> None:
        self.num_sentences = 0
        self.num_tokens = 0
        self._num_characters = 0
        self._on_tokens = on_tokens
        self._new_tokens = 0
        self._new_characters = 0

    def count(self, tokens: list[str]) -> None:
        self.num_sentences += 1
        self.num_tokens += len(tokens)
        self._new_tokens += len(tokens)
        num_characters = len(tokens) + sum(map(len, tokens))
        self._num_characters += num_characters
        self._new_characters += num_characters
        if self._new_tokens > 2000:
            self.flush()

    def take_back(self) -> None:
        """Start over, and report that what was counted does not count."""
        self._new_tokens -= self.num_tokens
        self._new_characters -= self._num_characters
        self.flush()
        self.num_sentences = self.num_tokens = self._num_characters = 0

    def flush(self) -> None:
        if self._on_tokens is not None:
            self._on_tokens(self._new_tokens, self._new_characters)
        self._new_tokens = self._new_characters = 0

"""Build an index of all uses of all words in some text files, or add files to one."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from elmore.arguments import explain_calls
from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder, load
from elmore.embed.layer_choice import ALL, TOP, Layers
from elmore.errors import ConfigError, DataError
from elmore.explore.index_sources import (
    GivenFile,
    choose_sources,
    find_sources,
    is_whole,
    read_source,
    skip_done,
)
from elmore.explore.index_state import (
    FOLDER,
    INDEX,
    PROGRESS,
    WORDS,
    IndexSettings,
    IndexSource,
    IndexState,
    make_empty_state,
    read_state,
)
from elmore.explore.index_writer import IndexedSentence, IndexWriter
from elmore.files.atomic import check_out
from elmore.files.growing_file import FileFacts
from elmore.files.owned_folder import LEFTOVERS, ChangedJobError, find_changes, remove
from elmore.settings import read_path
from elmore.text.files import TextForm
from elmore.text.inputs import read_form
from elmore.text.language import Language

# What a kill can cost: the work of this many bytes or seconds, whichever comes first.
COMMIT_BYTES = 128 << 20
COMMIT_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """What a finished call did, and what is in the index now."""

    out: str
    num_added_sources: int
    num_added_tokens: int
    num_resumed_tokens: int  # of the added ones, by earlier, interrupted calls
    num_sources: int
    num_sentences: int
    num_tokens: int
    num_words: int
    num_bytes: int
    layers: list[int]
    seconds: float


@explain_calls()
def build_index(
    text: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    model: str | Path | Embedder | None = None,
    layers: Layers = ALL,
    words: Sequence[str] = (),
    form: TextForm | str | None = None,
    language: Language | str = Language.EN,
    restart: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> IndexReport:
    """Build an index of text files in the folder `out`, or add files to it; like `elmore index`.

    `text` is a path, a pattern such as "texts/*.txt", or a list of them, read as `form` says.
    Parts of speech are kept if a file is CoNLL-U. `layers` are those to store: "all", "top", a
    number or a list of numbers. With `words`, only the uses of these words are indexed, ignoring
    case, and sentences without them are left out.

    Files that the index already has are skipped. If the call is interrupted, repeat it to resume;
    `restart` deletes the index and starts over. `on_progress` is called with the bytes read and
    the tokens embedded so far.

    ```python
    elmore.build_index("book.txt", "index")
    index = elmore.open_index("index")
    ```
    """
    started = time.monotonic()
    out = read_path("out", out)
    check_out(out)
    given = find_sources(text, form=read_form(form))
    if not isinstance(model, Embedder):
        model = load(model, language=language)
    settings = describe_settings(model, layers=layers, words=words)
    with FOLDER.hold(out):
        if restart:
            FOLDER.clear(out)
        remove(out, (LEFTOVERS,))
        state = _read_progress(out, settings)
        todo = choose_sources(given, state, folder=out)
        before = state.num_tokens
        resumed = 0 if is_whole(state) else state.sources[-1].num_tokens
        if todo or (out / PROGRESS).is_file():
            # Written before all other files: it shows that the folder is an index.
            replace(state, files=_keep_growing(state)).write(out / PROGRESS)
            with _removing_if_empty(out):
                state = _add_sources(out, state, todo, embedder=model, on_progress=on_progress)
    return IndexReport(
        out=str(out),
        num_added_sources=len(todo),
        num_added_tokens=state.num_tokens - before + resumed,
        num_resumed_tokens=resumed,
        num_sources=len(state.sources),
        num_sentences=state.num_sentences,
        num_tokens=state.num_tokens,
        num_words=state.num_words,
        num_bytes=sum(facts.num_bytes for facts in state.files.values()),
        layers=list(state.settings.layers),
        seconds=time.monotonic() - started,
    )


def describe_settings(
    embedder: Embedder, *, layers: Layers, words: Sequence[str] = ()
) -> IndexSettings:
    """Return the settings of an index that this embedder builds."""
    if embedder.state is not StatePolicy.RESET:
        raise ConfigError(
            f"the embedder's state policy is {str(embedder.state)!r}, but in an index every "
            "sentence is embedded by itself; load the model with state='reset'"
        )
    choice = embedder.choose_layers(layers)
    if choice.name == TOP:
        numbers = [embedder.num_layers - 1]
    else:
        numbers = choice.numbers or ([] if choice.number is None else [choice.number])
    if not numbers:
        raise ConfigError(
            f"layers is {str(choice)!r:.60}, but an index stores single layers; give all, top, or "
            "layer numbers such as 0,2"
        )
    return IndexSettings(
        model=embedder.model.config.about.name,
        model_hash=embedder.model.fingerprint(),
        num_layers=embedder.num_layers,
        layers=tuple(sorted(numbers)),
        vector_dim=embedder.vector_dim,
        precision=str(embedder.precision),
        language=str(embedder.language),
        words=tuple(sorted({word.casefold() for word in _check_words(words)})),
        kernel=embedder.kernel,
    )


def _check_words(words: Sequence[str]) -> Sequence[str]:
    is_list = isinstance(words, list | tuple | set | frozenset)
    if not is_list or not all(isinstance(word, str) and word for word in words):
        raise ConfigError(f"words is {words!r:.60}; give a list of words, or none for all words")
    return words


def _read_progress(folder: Path, settings: IndexSettings) -> IndexState:
    """Return what is in the folder; raise an error if it was started with other settings."""
    for name in (PROGRESS, INDEX):
        if (folder / name).is_file():
            state = read_state(folder / name, is_complete=name == INDEX)
            changes = find_changes(asdict(state.settings), asdict(settings))
            changes.pop("kernel", None)
            if changes:
                raise ChangedJobError(folder, list(changes.values()))
            return state
    return make_empty_state(settings)


def _keep_growing(state: IndexState) -> dict[str, FileFacts]:
    """Return the files that stay as they are while text is added."""
    return {name: state.files[name] for name in (WORDS, *state.growing_shapes())}


@contextmanager
def _removing_if_empty(folder: Path) -> Iterator[None]:
    """Leave no folder behind when a job fails before its first commit."""
    try:
        yield
    except BaseException:
        if read_state(folder / PROGRESS, is_complete=False).num_tokens == 0:
            FOLDER.clear(folder)
        raise


def _add_sources(
    folder: Path,
    state: IndexState,
    todo: Sequence[GivenFile],
    *,
    embedder: Embedder,
    on_progress: Callable[[int, int], None] | None,
) -> IndexState:
    with IndexWriter(folder, state) as writer:
        bytes_before = 0
        for source in todo:

            def report(num_bytes: int, start: int = bytes_before) -> None:
                if on_progress is not None:
                    on_progress(start + num_bytes, writer.state.num_tokens - state.num_tokens)

            _add_source(writer, source, embedder=embedder, on_bytes=report)
            bytes_before += source.path.stat().st_size
        if writer.state.num_tokens == 0:
            names = ", ".join(str(source.path) for source in todo)
            raise DataError(f"there are no tokens in {names:.200}; give a file with text")
        return writer.finish()


def _add_source(
    writer: IndexWriter, source: GivenFile, *, embedder: Embedder, on_bytes: Callable[[int], None]
) -> None:
    """Embed a file and append it; skip what an earlier call has done."""
    sentences = read_source(
        source,
        language=embedder.language,
        words=frozenset(writer.state.settings.words),
        on_bytes=on_bytes,
    )
    if is_whole(writer.state):
        entry = IndexSource(name=str(source.path), sha256=source.sha256, form=str(source.form))
        writer.start_source(entry)
    else:
        skip_done(sentences, writer.state, folder=writer.folder)
    waiting: list[IndexedSentence] = []
    num_before = writer.state.sources[-1].num_sentences
    windows = embedder.windows(
        _keep_each(sentences, waiting),
        layers=list(writer.state.settings.layers),
        num_before=num_before,
    )
    num_bytes, committed = 0, time.monotonic()
    for window in windows:
        num_done = len(window.vectors)
        writer.add(waiting[:num_done], window.vectors)
        del waiting[:num_done]
        num_bytes += sum(vectors.nbytes for vectors in window.vectors) // 2
        if num_bytes >= COMMIT_BYTES or time.monotonic() - committed >= COMMIT_SECONDS:
            writer.commit()
            num_bytes, committed = 0, time.monotonic()
    writer.end_source()


def _keep_each(
    sentences: Iterable[IndexedSentence], waiting: list[IndexedSentence]
) -> Iterator[list[str]]:
    """Yield the tokens of each sentence, and keep the sentence until its vectors are there."""
    for sentence in sentences:
        waiting.append(sentence)
        yield sentence.tokens

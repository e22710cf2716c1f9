"""What is in an index: its settings, sources, counts and files, as index.json records them.

index.json describes a complete index. While text is added, progress.json describes what has been
written so far in the same form. All large files only grow, so index.json stays true until the
addition is complete and it is replaced.

Shapes: N tokens, V distinct words, S sentences, D both directions of one layer. If only some words
were indexed, fewer tokens and words have vectors.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from elmore.errors import DataError
from elmore.files.atomic import replace_json
from elmore.files.growing_file import EMPTY, FileFacts
from elmore.files.hashing import hash_content
from elmore.files.owned_folder import FolderKind, read_marker

FORMAT = 1
KIND = "elmore index"
CHECKSUM = "checksum"

INDEX, PROGRESS = "index.json", "progress.json"
WORDS, TOKENS, TAGS, SENTENCES = "words.txt", "tokens.i32", "tags.u16", "sentences.i64"
COUNTS = (
    "num_words",
    "num_tokens",
    "num_sentences",
    "num_words_with_vectors",
    "num_tokens_with_vectors",
)
# The columns of SENTENCES: the first token, the line in the file, the document and the source.
NUM_COLUMNS = 4
MAX_TAGS = np.iinfo(np.uint16).max


def _is_marker(path: Path) -> bool:
    """Return whether a file is ours; others may use the name index.json too."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f'"kind": "{KIND}"'.encode() in file.read(100)


FOLDER = FolderKind(
    holds="an index",
    markers=(PROGRESS, INDEX),
    lock_name="lock",
    makes=(INDEX, "*.f16", "*.f32", "*.i64", "*.i32", "*.u16", "*.usearch", "*.graph.json", WORDS),
    is_marker=_is_marker,
    removes_lock=True,
)

Shapes = dict[str, tuple[str, tuple[int, ...]]]


def vectors_name(layer: int) -> str:
    """Return the file of a layer's vectors."""
    return f"layer{layer}.f16"


def norms_name(layer: int) -> str:
    """Return the file of the lengths of a layer's vectors."""
    return f"layer{layer}_norms.f32"


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """How the vectors were made; text can only be added with the same settings."""

    model: str
    model_hash: str
    num_layers: int  # of the model
    layers: tuple[int, ...]  # that are stored
    vector_dim: int
    precision: str
    language: str
    words: tuple[str, ...]  # those to index, case-folded and sorted; empty for all
    kernel: str  # recorded, not compared: f16 is coarser than the differences between kernels


@dataclass(frozen=True, kw_only=True)
class IndexSource:
    """A text file in an index, and how much of it there is."""

    name: str
    sha256: str
    form: str
    num_sentences: int = 0
    num_tokens: int = 0
    is_complete: bool = False


@dataclass(frozen=True, kw_only=True)
class IndexState:
    """Everything that index.json says."""

    settings: IndexSettings
    sources: tuple[IndexSource, ...] = ()
    tags: tuple[str, ...] = ()  # number 0 in TAGS is "no tag", number 1 the first of these
    num_words: int = 0
    num_tokens: int = 0
    num_sentences: int = 0
    num_words_with_vectors: int = 0
    num_tokens_with_vectors: int = 0
    files: Mapping[str, FileFacts] = field(default_factory=dict)

    def growing_shapes(self) -> Shapes:
        """Return the type and shape of each array that only grows."""
        dim = self.settings.vector_dim
        shapes: Shapes = {
            TOKENS: ("<i4", (self.num_tokens,)),
            TAGS: ("<u2", (self.num_tokens,)),
            SENTENCES: ("<i8", (self.num_sentences, NUM_COLUMNS)),
        }
        for layer in self.settings.layers:
            # Layer 0 does not depend on context, so it has one vector per word.
            rows = self.num_tokens_with_vectors if layer else self.num_words_with_vectors
            shapes[vectors_name(layer)] = ("<f2", (rows, dim))
            shapes[norms_name(layer)] = ("<f4", (rows,))
        return shapes

    @property
    def occurrences_name(self) -> str:
        """The file of all tokens' numbers, sorted by word."""
        # Its name changes with the index, so that index.json never points at a newer file.
        return f"occurrences-{self.num_tokens}.i64"

    @property
    def word_starts_name(self) -> str:
        """The file that says where each word's occurrences start."""
        return f"word_starts-{self.num_tokens}.i64"

    def sorted_shapes(self) -> Shapes:
        """Return the type and shape of the arrays that are made when all text was added."""
        return {
            self.occurrences_name: ("<i8", (self.num_tokens,)),
            self.word_starts_name: ("<i8", (self.num_words + 1,)),
        }

    def write(self, path: Path) -> None:
        """Write index.json or progress.json."""
        content = {"kind": KIND, "format": FORMAT, **asdict(self)}
        replace_json(path, {**content, CHECKSUM: hash_content(content, ignores=CHECKSUM)}, indent=1)


def make_empty_state(settings: IndexSettings) -> IndexState:
    """Return the state of an index without text."""
    state = IndexState(settings=settings)
    return replace(state, files=dict.fromkeys((WORDS, *state.growing_shapes()), EMPTY))


def damaged(what: str) -> DataError:
    """Return the error for a damaged index; `what` says what is wrong."""
    return DataError(f"{what}; copy the index again, or build it with elmore index --restart")


def read_state(path: Path, *, is_complete: bool) -> IndexState:
    """Read and check index.json or progress.json."""
    content = read_marker(path, wanted_format=FORMAT, kind=KIND)
    try:
        return _parse(content, is_complete=is_complete)
    except KeyError as error:
        raise damaged(f"{path} is damaged (it lacks {error})") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise damaged(f"{path} is damaged ({error!s:.200})") from None


def _parse(content: Mapping[str, Any], *, is_complete: bool) -> IndexState:
    """Raise `ValueError`, `KeyError`, `TypeError` or `AttributeError` if it is invalid."""
    if content[CHECKSUM] != hash_content(content, ignores=CHECKSUM):
        raise ValueError("its checksum differs")
    state = IndexState(
        settings=_make(IndexSettings, content["settings"], layers=tuple, words=tuple),
        sources=tuple(_make(IndexSource, source) for source in content["sources"]),
        tags=tuple(content["tags"]),
        **{name: content[name] for name in COUNTS},
        files={name: _make(FileFacts, facts) for name, facts in content["files"].items()},
    )
    for problem in _find_problems(state, is_complete=is_complete):
        raise ValueError(problem)
    return state


def _make(kind: Any, values: Mapping[str, Any], **converted: Any) -> Any:
    """Build a dataclass from JSON; each value must have the type of its field."""
    names = {field.name: field.type for field in fields(kind)}
    if set(values) != set(names):
        raise ValueError(f"its {kind.__name__} has the fields {', '.join(values)!s:.100}")
    made = {name: converted.get(name, _same)(value) for name, value in values.items()}
    for name, wanted in names.items():
        is_number = wanted is int and type(made[name]) is int and made[name] >= 0
        is_sound = (
            is_number
            if wanted is int
            else wanted not in (str, bool) or (type(made[name]) is wanted)
        )
        if not is_sound:
            raise ValueError(f"{name} is {made[name]!r:.60}")
    return kind(**made)


def _same(value: Any) -> Any:
    return value


def _find_problems(state: IndexState, *, is_complete: bool) -> Iterator[str]:
    """Yield what contradicts itself. Other files are located and checked with these values."""
    for name in COUNTS:
        if type(getattr(state, name)) is not int or getattr(state, name) < 0:
            yield f"{name} is {getattr(state, name)!r:.60}"
    settings = state.settings
    numbers = list(settings.layers)
    if not numbers or numbers != [n for n in range(settings.num_layers) if n in numbers]:
        yield f"its layers are {numbers!r:.60}"
    if not all(isinstance(word, str) for word in settings.words):
        yield f"its words are {settings.words!r:.60}"
    if settings.vector_dim < 1:
        yield "its vectors have no numbers"
    if not all(isinstance(tag, str) for tag in state.tags) or len(state.tags) > MAX_TAGS:
        yield "its tags are invalid"
    for name in ("num_tokens", "num_sentences"):
        if sum(getattr(source, name) for source in state.sources) != getattr(state, name):
            yield f"the {name} of its sources do not add up"
    if is_complete and not all(source.is_complete for source in state.sources):
        yield "one of its sources is incomplete"
    shapes = state.growing_shapes() | (state.sorted_shapes() if is_complete else {})
    if set(state.files) != {WORDS, *shapes}:
        yield "it lists other files than its settings ask for"
    for name, (dtype, shape) in shapes.items():
        num_bytes = int(np.dtype(dtype).itemsize * np.prod(shape, dtype=object))
        if state.files[name].num_bytes != num_bytes:
            yield f"{name} should have {num_bytes:,} bytes"


def check_folder(folder: Path) -> None:
    """Raise an error unless a folder has a complete index."""
    if (folder / INDEX).is_file():
        return
    if (folder / PROGRESS).is_file():
        raise DataError(
            f"the index in {folder} is unfinished; rerun the elmore index command to resume"
        )
    if not folder.exists():
        raise DataError(f"there is no folder {folder}; build an index with elmore index")
    raise DataError(f"{folder} is not an index; build one with elmore index")


def is_index(path: Path) -> bool:
    """Return whether a folder has an index, finished or not."""
    return FOLDER.is_ours(path)


def looks_like_index(path: Path) -> bool:
    """Return whether a folder has or had an index, which may be damaged."""
    return any((path / name).is_file() for name in (INDEX, PROGRESS))

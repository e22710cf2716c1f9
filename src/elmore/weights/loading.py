"""Find a model, recognize its format and load it; load the same model again in another process."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import h5py

from elmore.arguments import explain_calls
from elmore.errors import ModelError
from elmore.files.untrusted import read_json
from elmore.weights.archive import SUFFIXES, is_archive, name_archive, unpack
from elmore.weights.bilm_tf import HDF5_SUFFIXES, OPTIONS, TOKEN_EMBEDDINGS, open_bilm_tf
from elmore.weights.bilm_tf_checkpoint import open_checkpoint
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.hub import fetch
from elmore.weights.many_langs import read_many_langs
from elmore.weights.model_folder import FILES, find_folder
from elmore.weights.softmax_file import FILES as SOFTMAX_FILES
from elmore.weights.tf_checkpoint.prefix import find_prefix

DEFAULT_MODEL = Path(__file__).parents[1] / "models" / "english"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSource:
    """The files of a model, as absolute paths; no path means the model shipped with elmore."""

    path: str | None = None
    options: str | None = None
    token_embeddings: str | None = None
    vocabulary: str | None = None
    softmax: str | None = None
    archive: str | None = None  # that `path` was unpacked from, for a moment
    # For a hub model, `path` is a snapshot of this commit, and is downloaded again if missing.
    hub_id: str | None = None
    revision: str | None = None
    fingerprint: str | None = None  # of the loaded model

    @property
    def is_default(self) -> bool:
        """Whether this is the model shipped with elmore."""
        return self.path is None

    @property
    def hub_options(self) -> dict[str, str]:
        """The options with which to fetch more files of the same hub model."""
        return {"revision": self.revision} if self.revision else {}

    def __str__(self) -> str:
        """Return the name of the model for messages."""
        return self.hub_id or self.path or "the elmore package"

    def find(self) -> Path:
        """Return the current path of the model."""
        if self.path is None:
            return find_default()
        if self.hub_id is None or Path(self.path).exists():
            return find_folder(self.path)
        return find_folder(self.hub_id, **self.hub_options)

    def find_complete(self, *, remedy: str) -> str:
        """Return the path of a model that needs no other files; also fetch its softmax."""
        if self.options or self.token_embeddings or self.vocabulary or self.softmax:
            raise ModelError(f"the model of this embedder was loaded from several files; {remedy}")
        if self.hub_id is not None:
            fetch(self.hub_id, [*FILES, *SOFTMAX_FILES], **self.hub_options)
        return str(self.find())

    def read_again(self) -> ElmoModel:
        """Load the model again, and check that it is still the same."""
        try:
            model = read_source(self)
        except ModelError as error:
            raise ModelError(
                f"this embedder was loaded from {self}, but its model cannot be loaded again: "
                f"{error}"
            ) from error
        self.check_same(model)
        return model

    def check_same(self, model: ElmoModel) -> None:
        """Raise an error unless a model that was loaded again is still the same."""
        if model.fingerprint() != self.fingerprint:
            raise ModelError(
                f"the model at {self} has changed since this embedder loaded it; load it again "
                "with elmore.load, or restore the earlier model"
            )


def find_source(
    source: str | Path | None,
    *,
    options: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    vocabulary: str | Path | None = None,
    softmax: str | Path | None = None,
    revision: str | None = None,
) -> ModelSource:
    """Find a model, downloading it first if `source` is a hub id."""
    if source is None:
        if options or token_embeddings or vocabulary or softmax:
            raise ModelError(
                "options, token embeddings, vocabulary and softmax need weights; give a model"
            )
        return ModelSource()
    if not isinstance(source, str | os.PathLike):
        raise ModelError(f"model is {source!r:.60}; give a folder, a file or a hub id")
    prefix = _find_bare_prefix(source)
    path = prefix or find_folder(source, **({"revision": revision} if revision else {}))
    is_fetched = prefix is None and path != Path(source).expanduser()
    # The hub's cache names a snapshot's folder after its commit; a branch may change later.
    is_snapshot = is_fetched and path.parent.name == "snapshots"
    return ModelSource(
        path=_make_absolute(path),
        options=_make_absolute(options),
        token_embeddings=_make_absolute(token_embeddings),
        vocabulary=_make_absolute(vocabulary),
        softmax=_make_absolute(softmax),
        hub_id=str(source) if is_fetched else None,
        revision=path.name if is_snapshot else revision,
    )


def _find_bare_prefix(source: str | Path) -> Path | None:
    """Return the index of a checkpoint that is given by its prefix, which is no file."""
    try:
        path = Path(source).expanduser()
        index = path.with_name(f"{path.name}.index")
        return index if not path.exists() and index.is_file() else None
    except (OSError, ValueError, RuntimeError):  # no file can have this name
        return None


def _make_absolute(path: str | Path | None) -> str | None:
    return str(Path(path).absolute()) if path else None


@explain_calls()
def load_model(
    source: str | Path | None = None,
    *,
    options: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    vocabulary: str | Path | None = None,
    softmax: str | Path | None = None,
    revision: str | None = None,
) -> ElmoModel:
    """Load a model folder, a hub id, or a model of bilm-tf, AllenNLP or ELMoForManyLangs.

    bilm-tf's models are HDF5 weights or a TensorFlow checkpoint. `options` (default: found next to
    the weights), `token_embeddings`, `vocabulary` and `softmax` are for them. Published archives
    (.zip, .tar.gz, .tar.bz2) are read as they are. Without a source, load the model shipped with
    elmore.
    """
    return read_source(
        find_source(
            source,
            options=options,
            token_embeddings=token_embeddings,
            vocabulary=vocabulary,
            softmax=softmax,
            revision=revision,
        )
    )


def read_source(source: ModelSource) -> ElmoModel:
    """Load the model of a source."""
    with open_model(source) as model:
        model.require_weights()
        return model


@contextmanager
def open_model(source: ModelSource) -> Iterator[ElmoModel]:
    """Give the model of a source with its weights unread; they can be read within the block."""
    if source.is_default:
        yield ElmoModel.open_folder(find_default())
        return
    with open_source(source) as opened, _open_found(opened) as model:
        yield model


@contextmanager
def open_source(source: ModelSource) -> Iterator[ModelSource]:
    """Find the files of a source; those of an archive are removed at the end."""
    path = source.find()
    if not is_archive(path):
        yield replace(source, path=str(path))
        return
    with unpack(path) as folder:
        yield replace(source, path=str(folder), hub_id=None, archive=str(path))


@contextmanager
def _open_found(source: ModelSource) -> Iterator[ElmoModel]:
    assert source.path is not None
    path = Path(source.path)
    has_more = source.options or source.token_embeddings or source.vocabulary or source.softmax
    is_model_folder = (path / "model.safetensors").exists()
    is_many_langs = not is_model_folder and (path / "encoder.pkl").exists()
    if has_more and (is_model_folder or is_many_langs):
        raise ModelError(
            f"{path} is a complete model; give options, token embeddings, a vocabulary and a "
            "softmax with weights of bilm-tf only"
        )
    with ExitStack() as files:
        if is_model_folder:
            model = ElmoModel.open_folder(path)
        elif is_many_langs:
            model = read_many_langs(path)
            model.set_weights_aside()
        else:
            model = files.enter_context(_open_bilm_tf(source, path))
        if source.archive is not None and not is_model_folder:
            about = replace(model.config.about, name=name_archive(Path(source.archive)))
            model.config = replace(model.config, about=about)
        yield model


def _open_bilm_tf(source: ModelSource, path: Path) -> AbstractContextManager[ElmoModel]:
    """Open HDF5 weights, or a checkpoint if there are none."""
    vocabulary = Path(source.vocabulary) if source.vocabulary else None
    prefix = find_prefix(path) if _is_checkpoint(path) else None
    if prefix is not None:
        if source.token_embeddings:
            raise ModelError(
                f"{prefix} is a checkpoint, which holds its token vectors; leave out "
                "--token-embeddings"
            )
        model = open_checkpoint(
            prefix,
            Path(source.options) if source.options else _find_options(prefix),
            vocabulary_path=vocabulary or find_vocabulary(prefix.parent),
        )
        return nullcontext(model)
    weights = _find_weights(path)
    return open_bilm_tf(
        weights,
        Path(source.options) if source.options else _find_options(weights),
        token_embeddings_path=Path(source.token_embeddings) if source.token_embeddings else None,
        # With a softmax, this may be the vocabulary of that alone.
        vocabulary_path=None if source.softmax and not source.token_embeddings else vocabulary,
    )


def _is_checkpoint(path: Path) -> bool:
    """Return whether a path is a checkpoint; HDF5 weights in the same folder come first."""
    return not path.is_dir() or not _list_weights(path)


def find_softmax(source: ModelSource) -> tuple[Path, Path] | None:
    """Return the checkpoint that has the softmax of an opened source, and its vocabulary."""
    given = source.softmax or source.path
    prefix = find_prefix(Path(given)) if given else None
    if prefix is None:
        if source.softmax:
            raise ModelError(
                f"there is no TensorFlow checkpoint at {source.softmax}; give the path of one, "
                "such as model.ckpt-935588"
            )
        return None
    if source.vocabulary:
        return prefix, Path(source.vocabulary)
    vocabulary = find_vocabulary(prefix.parent)
    if vocabulary is None:
        raise ModelError(
            f"the softmax of {prefix} needs the words that it predicts; give the vocabulary that "
            "the model was trained with (--vocabulary vocab.txt)"
        )
    return prefix, vocabulary


def find_vocabulary(folder: Path) -> Path | None:
    """Return the only vocabulary in a folder, such as vocab.txt or vocab-2016-09-10.txt."""
    names = sorted(path for path in folder.glob("vocab*.txt*") if path.is_file())
    found = [path for path in names if path.name.endswith((".txt", ".txt.gz"))]
    return found[0] if len(found) == 1 else None


def default_model() -> ElmoModel:
    """Load the model shipped with elmore, the default."""
    return ElmoModel.from_pretrained(find_default())


def find_default() -> Path:
    """Return the folder of the model shipped with elmore."""
    if not (DEFAULT_MODEL / "model.safetensors").exists():
        raise ModelError(
            "this installation of elmore lacks its model; give another (--model), or reinstall "
            "elmore"
        )
    return DEFAULT_MODEL


def _find_weights(path: Path) -> Path:
    """Return the HDF5 weight file: the path itself, or the only one in a folder."""
    if path.is_file():
        # AllenNLP's cache and archives name weights without a suffix.
        if path.suffix.lower() not in HDF5_SUFFIXES and not h5py.is_hdf5(path):
            raise ModelError(
                f"{path} is not a model: give a model folder, an ELMoForManyLangs folder, a "
                f"TensorFlow checkpoint, an archive ({', '.join(SUFFIXES)}) or HDF5 weights"
            )
        return path
    if not path.is_dir():
        raise ModelError(f"{path} is neither a file nor a folder; give the path of a model")
    found = _list_weights(path)
    if len(found) != 1:
        raise ModelError(
            f"{path} holds no model.safetensors, no encoder.pkl, no checkpoint and {len(found)} "
            "HDF5 files; give the folder or the weight file of one model"
        )
    return found[0]


def _list_weights(folder: Path) -> list[Path]:
    """Return the HDF5 weights in a folder."""
    found = [file for file in sorted(folder.iterdir()) if file.suffix.lower() in HDF5_SUFFIXES]
    return [file for file in found if file.name != TOKEN_EMBEDDINGS]


def _find_options(weights: Path) -> Path:
    """Return the options file next to published weights, under any of its usual names."""
    for name in (weights.stem.replace("weights", "options") + ".json", OPTIONS):
        if (weights.parent / name).exists():
            return weights.parent / name
    others = [path for path in sorted(weights.parent.glob("*.json")) if _has_lstm(path)]
    if len(others) == 1:
        return others[0]
    raise ModelError(
        f"expected one options file next to {weights}, got {len(others)}; give the one that "
        "belongs to the weights (--options options.json)"
    )


def _has_lstm(path: Path) -> bool:
    try:
        return "lstm" in read_json(path)
    except ModelError:
        return False  # some unrelated file

"""Find a model, recognize its format and load it; load the same model again in another process."""

import os
from dataclasses import dataclass
from pathlib import Path

from elmore.errors import ModelError
from elmore.files.untrusted import read_json
from elmore.weights.bilm_tf import HDF5_SUFFIXES, OPTIONS, TOKEN_EMBEDDINGS, read_bilm_tf
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.many_langs import read_many_langs
from elmore.weights.model_folder import find_folder

DEFAULT_MODEL = Path(__file__).parents[1] / "models" / "english"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSource:
    """The files of a model, as absolute paths; no path means the model shipped with elmore."""

    path: str | None = None
    options: str | None = None
    token_embeddings: str | None = None
    vocabulary: str | None = None
    # For a hub model, `path` is a snapshot of this commit, and is downloaded again if missing.
    hub_id: str | None = None
    revision: str | None = None
    fingerprint: str | None = None  # of the loaded model

    @property
    def is_default(self) -> bool:
        """Whether this is the model shipped with elmore."""
        return self.path is None

    def __str__(self) -> str:
        """Return the name of the model for messages."""
        return self.hub_id or self.path or "the elmore package"

    def find(self) -> Path:
        """Return the current path of the model."""
        assert self.path is not None
        if self.hub_id is None or Path(self.path).exists():
            return find_folder(self.path)
        return find_folder(self.hub_id, revision=self.revision)

    def read_again(self) -> ElmoModel:
        """Load the model again, and check that it is still the same."""
        try:
            model = read_source(self)
        except ModelError as error:
            raise ModelError(
                f"this embedder was loaded from {self}, but its model cannot be loaded again: "
                f"{error}"
            ) from error
        if model.fingerprint() != self.fingerprint:
            raise ModelError(
                f"the model at {self} has changed since this embedder was pickled; load it again "
                "with elmore.load, or restore the earlier model"
            )
        return model


def find_source(
    source: str | Path | None,
    *,
    options: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    vocabulary: str | Path | None = None,
    revision: str | None = None,
) -> ModelSource:
    """Find a model, downloading it first if `source` is a hub id."""
    if source is None:
        if options or token_embeddings or vocabulary:
            raise ModelError("options, token embeddings and vocabulary need weights; give a model")
        return ModelSource()
    if not isinstance(source, str | os.PathLike):
        raise ModelError(f"model is {source!r:.60}; give a folder, a file or a hub id")
    path = find_folder(source, **({"revision": revision} if revision else {}))
    is_fetched = path != Path(source).expanduser()
    # The hub's cache names a snapshot's folder after its commit; a branch may change later.
    is_snapshot = is_fetched and path.parent.name == "snapshots"
    return ModelSource(
        path=_make_absolute(path),
        options=_make_absolute(options),
        token_embeddings=_make_absolute(token_embeddings),
        vocabulary=_make_absolute(vocabulary),
        hub_id=str(source) if is_fetched else None,
        revision=path.name if is_snapshot else revision,
    )


def _make_absolute(path: str | Path | None) -> str | None:
    return str(Path(path).absolute()) if path else None


def load_model(
    source: str | Path | None = None,
    *,
    options: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    vocabulary: str | Path | None = None,
    revision: str | None = None,
) -> ElmoModel:
    """Load a model folder, a hub id, bilm-tf HDF5 weights or an ELMoForManyLangs folder.

    `options` (default: found next to the weights), `token_embeddings` and `vocabulary` are for HDF5
    weights. Without a source, load the model shipped with elmore.
    """
    return read_source(
        find_source(
            source,
            options=options,
            token_embeddings=token_embeddings,
            vocabulary=vocabulary,
            revision=revision,
        )
    )


def read_source(source: ModelSource) -> ElmoModel:
    """Load the model of a source."""
    if source.is_default:
        return default_model()
    path = source.find()
    has_more = source.options or source.token_embeddings or source.vocabulary
    is_model_folder = (path / "model.safetensors").exists()
    if is_model_folder or (path / "encoder.pkl").exists():
        if has_more:
            raise ModelError(
                f"{path} is a complete model; give options, token embeddings and a vocabulary with "
                "HDF5 weights only"
            )
        return ElmoModel.from_pretrained(path) if is_model_folder else read_many_langs(path)
    weights = _find_weights(path)
    return read_bilm_tf(
        weights,
        Path(source.options) if source.options else _find_options(weights),
        token_embeddings_path=Path(source.token_embeddings) if source.token_embeddings else None,
        vocabulary_path=Path(source.vocabulary) if source.vocabulary else None,
    )


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
        if path.suffix.lower() not in HDF5_SUFFIXES:
            raise ModelError(
                f"{path} is not a model: give a model folder, an ELMoForManyLangs folder or "
                f"weights ending in {' or '.join(HDF5_SUFFIXES)}"
            )
        return path
    if not path.is_dir():
        raise ModelError(f"{path} is neither a file nor a folder; give the path of a model")
    found = [file for file in sorted(path.iterdir()) if file.suffix.lower() in HDF5_SUFFIXES]
    found = [file for file in found if file.name != TOKEN_EMBEDDINGS]
    if len(found) != 1:
        raise ModelError(
            f"{path} holds no model.safetensors, no encoder.pkl and {len(found)} HDF5 files; "
            "give the folder or the weight file of one model"
        )
    return found[0]


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

"""Load a model of any format: recognize what a path holds and call the right reader."""

from pathlib import Path

from elmore.errors import ModelError
from elmore.files.json_file import read_json
from elmore.weights.bilm_tf import HDF5_SUFFIXES, OPTIONS, TOKEN_EMBEDDINGS, read_bilm_tf
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.many_langs import read_many_langs
from elmore.weights.model_source import ModelSource, find_source

DEFAULT_MODEL = Path(__file__).parents[1] / "models" / "english"


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

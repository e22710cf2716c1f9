"""Find out what a path holds, and load it: every model comes in through here."""

from pathlib import Path

from elmore.config import About, CharacterConfig, LSTMConfig, ModelConfig
from elmore.errors import ModelError
from elmore.weights.bilm_tf import read_bilm_tf
from elmore.weights.elmo_model import ElmoModel, new_model
from elmore.weights.hub import find_folder
from elmore.weights.json_file import read_json
from elmore.weights.many_langs import read_many_langs

HDF5_SUFFIXES = (".hdf5", ".h5")
DEFAULT_SEED = 20180215


def load_model(
    source: str | Path | None = None,
    *,
    options: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    vocabulary: str | Path | None = None,
    revision: str | None = None,
) -> ElmoModel:
    """Load a model folder, a hub id, bilm-tf HDF5 weights or an ELMoForManyLangs folder.

    `options` (else found beside the weights), `token_embeddings` and `vocabulary` go with HDF5.
    Without a source, the default model is made.
    """
    if source is None:
        return default_model()
    path = find_folder(source, **({"revision": revision} if revision else {}))
    if path.is_dir() and (path / "model.safetensors").exists():
        return ElmoModel.from_pretrained(path)
    if path.is_dir() and (path / "encoder.pkl").exists():
        return read_many_langs(path)
    weights = _find_weights(path)
    return read_bilm_tf(
        weights,
        Path(options) if options else _find_options(weights),
        token_embeddings_path=Path(token_embeddings) if token_embeddings else None,
        vocabulary_path=Path(vocabulary) if vocabulary else None,
    )


def default_model() -> ElmoModel:
    """Make the model used when none is named: tiny, drawn from a fixed seed, untrained."""
    config = ModelConfig(
        lstm=LSTMConfig(num_layers=2, cell_dim=128, output_dim=32),
        characters=CharacterConfig(
            embedding_dim=8, filters=((1, 8), (2, 16), (3, 32), (4, 64)), num_highway_layers=1
        ),
        about=About(
            name="elmore-untrained-tiny",
            source=f"elmore, drawn from seed {DEFAULT_SEED}",
            is_trained=False,
            license="apache-2.0",
        ),
    )
    return new_model(config, seed=DEFAULT_SEED)


def _find_weights(path: Path) -> Path:
    """Return the HDF5 file that a path is, or that a folder holds."""
    if path.is_file():
        if path.suffix not in HDF5_SUFFIXES:
            raise ModelError(
                f"{path} is not a model: give a model folder, an ELMoForManyLangs folder or "
                f"weights ending in {' or '.join(HDF5_SUFFIXES)}"
            )
        return path
    found = sorted(file for file in path.iterdir() if file.suffix in HDF5_SUFFIXES)
    found = [file for file in found if file.name != "token_embeddings.hdf5"]
    if len(found) != 1:
        raise ModelError(
            f"{path} holds no model.safetensors, no encoder.pkl and {len(found)} HDF5 files; "
            "give the folder or the weight file of one model"
        )
    return found[0]


def _find_options(weights: Path) -> Path:
    """Return the options beside published weights, whatever of the usual names they have."""
    names = [weights.stem.replace("weights", "options") + ".json", "options.json"]
    for name in names:
        if (weights.parent / name).is_file():
            return weights.parent / name
    others = [path for path in weights.parent.glob("*.json") if "lstm" in read_json(path)]
    if len(others) == 1:
        return others[0]
    raise ModelError(f"there are no options beside {weights}; pass them: --options options.json")

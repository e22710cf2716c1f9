"""bilm-tf's HDF5 weights, which AllenNLP reads too: every array's name, shape and meaning."""

from pathlib import Path

import h5py
import numpy as np
import torch
from torch import Tensor

from elmore.atomic_file import replace_file
from elmore.config import ModelConfig, Units
from elmore.errors import ModelError
from elmore.text.vocabulary import read_entries, write_entries
from elmore.weights.bilm_tf_options import make_options, read_options
from elmore.weights.elmo_model import ElmoModel, assemble_model
from elmore.weights.hdf5_arrays import (
    FloatArray,
    Shape,
    has_dataset,
    open_hdf5,
    read_arrays,
    write_arrays,
)
from elmore.weights.json_file import read_json, write_json

# The file has the gates as TensorFlow orders them (input, candidate, forget, output), torch swaps
# the middle two; swapping is its own inverse.
GATE_ORDER = [0, 2, 1, 3]
DIRECTIONS = ("forward_lm", "backward_lm")


def read_bilm_tf(
    weights_path: Path,
    options_path: Path,
    *,
    token_embeddings_path: Path | None = None,
    vocabulary_path: Path | None = None,
) -> ElmoModel:
    """Load a model; with a token-embedding file its tokens are looked up, not spelled."""
    if (token_embeddings_path is None) != (vocabulary_path is None):
        raise ModelError("a token-embedding file and its vocabulary belong together; give both")
    words: list[str] = []
    embeddings: FloatArray | None = None
    if token_embeddings_path is not None and vocabulary_path is not None:
        words = _read_vocabulary(vocabulary_path)
        embeddings = _read_token_embeddings(token_embeddings_path, num_words=len(words))
    config = read_options(
        read_json(options_path),
        name=weights_path.stem,
        num_words=None if embeddings is None else len(words),
    )
    with open_hdf5(weights_path) as file:
        config = _follow_file(config, file)
        is_single = has_dataset(file, _cell_root(0, 0, is_single=True) + "/W_0")
        arrays = read_arrays(file, _shapes(config, is_single=is_single))
    tensors = _to_tensors(arrays, config, is_single=is_single)
    if embeddings is not None:
        tensors["token_encoder.words.weight"] = torch.from_numpy(embeddings)
    return assemble_model(config, tensors, words=words)


def write_bilm_tf(model: ElmoModel, weights_path: Path, *, overwrite: bool = False) -> list[Path]:
    """Write HDF5 weights and `options.json` beside them; return the files written.

    A model of word vectors gets `token_embeddings.hdf5` and `vocabulary.txt` too.
    """
    config = model.config
    _check_writable(config)
    options_path = weights_path.parent / "options.json"
    options = make_options(config)
    if options_path.exists() and not overwrite and not _agrees(options_path, options):
        raise ModelError(
            f"{options_path} describes another model; choose another folder for {weights_path.name}"
            " or pass --overwrite"
        )
    tensors = model.bilm.state_dict()
    written = [weights_path]
    with replace_file(weights_path) as temporary:
        write_arrays(temporary, _to_arrays(tensors, config))
    if config.words is not None:
        embeddings_path = weights_path.parent / "token_embeddings.hdf5"
        with replace_file(embeddings_path) as temporary:
            write_arrays(temporary, {"embedding": _numpy(tensors["token_encoder.words.weight"])})
        vocabulary_path = weights_path.parent / "vocabulary.txt"
        with replace_file(vocabulary_path) as temporary:
            write_entries(temporary, model.words)
        written += [embeddings_path, vocabulary_path]
    if not options_path.exists() or not _agrees(options_path, options):
        with replace_file(options_path) as temporary:
            write_json(temporary, options)
    return [*written, options_path]


def _agrees(path: Path, options: dict[str, object]) -> bool:
    """Tell whether a file that is there already describes the same network."""
    try:
        there = read_options(read_json(path), name="", num_words=None)
        ours = read_options(options, name="", num_words=None)
    except ModelError:
        return False
    return (there.lstm, there.characters) == (ours.lstm, ours.characters)


def _check_writable(config: ModelConfig) -> None:
    """Refuse what bilm-tf's format has no words for."""
    characters, words = config.characters, config.words
    if characters is not None and words is not None:
        raise ModelError("bilm-tf's format holds characters or words, and this model has both")
    if characters is not None and characters.units is not Units.BYTES:
        raise ModelError("bilm-tf spells tokens in bytes, this model in a list of characters")
    if words is not None and config.has_token_projection:
        raise ModelError("bilm-tf's word vectors have no projection, and this model has one")
    if words is not None and (words.begin, words.end, words.unknown) != ("<S>", "</S>", "<UNK>"):
        raise ModelError("bilm-tf's vocabulary has <S>, </S> and <UNK>; this model names them else")
    if not config.lstm.has_projection and config.lstm.output_dim != config.lstm.cell_dim:
        raise ModelError("bilm-tf needs equal widths where there is no projection")
    if config.lstm.has_projection and config.lstm.output_dim >= config.lstm.cell_dim:
        raise ModelError("bilm-tf projects to fewer numbers than there are cells; this model not")


def _read_vocabulary(path: Path) -> list[str]:
    """Read a vocabulary as bilm-tf does: stripped lines, and of a repeated word the last counts."""
    words = [line.strip() for line in read_entries(path)]
    words = [word for word in words if word != "!!!MAXTERMID"]
    last = {word: place for place, word in enumerate(words)}
    return [word if last[word] == place else "" for place, word in enumerate(words)]


def _read_token_embeddings(path: Path, *, num_words: int) -> FloatArray:
    with open_hdf5(path) as file:
        if not has_dataset(file, "embedding") or file["embedding"].ndim != 2:
            raise ModelError(f"{path} lacks the table 'embedding' of a token-embedding file")
        shape = file["embedding"].shape
        if shape[0] != num_words:
            raise ModelError(
                f"{path} has {shape[0]} vectors but the vocabulary {num_words} words; "
                "give the vocabulary the vectors were made from"
            )
        return read_arrays(file, {"embedding": shape})["embedding"]


def _follow_file(config: ModelConfig, file: h5py.File) -> ModelConfig:
    """Keep a projection that AllenNLP would use though the widths are equal."""
    if config.characters is None or not has_dataset(file, "CNN_proj/W_proj"):
        return config
    return ModelConfig(
        lstm=config.lstm,
        characters=config.characters,
        has_token_projection=True,
        about=config.about,
    )


def _cell_root(direction: int, layer: int, *, is_single: bool) -> str:
    """Name the group of one LSTM layer; bilm-tf dumps a model of one layer under a shorter name."""
    middle = "" if is_single else f"MultiRNNCell/Cell{layer}/"
    return f"RNN_{direction}/RNN/{middle}LSTMCell"


def _shapes(config: ModelConfig, *, is_single: bool) -> dict[str, Shape]:
    """Return every array that the weight file of such a model has."""
    shapes: dict[str, Shape] = {}
    characters, lstm = config.characters, config.lstm
    if characters is not None:
        dim, total = characters.embedding_dim, characters.output_dim
        shapes["char_embed"] = (characters.num_units, dim)
        for place, (width, number) in enumerate(characters.filters):
            shapes[f"CNN/W_cnn_{place}"] = (1, width, dim, number)
            shapes[f"CNN/b_cnn_{place}"] = (number,)
        for depth in range(characters.num_highway_layers):
            for part in ("carry", "transform"):
                shapes[f"CNN_high_{depth}/W_{part}"] = (total, total)
                shapes[f"CNN_high_{depth}/b_{part}"] = (total,)
        if config.has_token_projection:
            shapes["CNN_proj/W_proj"] = (total, lstm.output_dim)
            shapes["CNN_proj/b_proj"] = (lstm.output_dim,)
    for direction in range(2):
        for layer in range(lstm.num_layers):
            root = _cell_root(direction, layer, is_single=is_single)
            shapes[f"{root}/W_0"] = (2 * lstm.output_dim, 4 * lstm.cell_dim)
            shapes[f"{root}/B"] = (4 * lstm.cell_dim,)
            if lstm.has_projection:
                shapes[f"{root}/W_P_0"] = (lstm.cell_dim, lstm.output_dim)
    return shapes


def _to_tensors(
    arrays: dict[str, FloatArray], config: ModelConfig, *, is_single: bool
) -> dict[str, Tensor]:
    """Rename and turn the file's arrays into the network's weights."""
    weights: dict[str, FloatArray] = {}
    if config.characters is not None:
        encoder = "token_encoder"
        weights[f"{encoder}.characters.embedding.weight"] = arrays["char_embed"]
        for place, (_, number) in enumerate(config.characters.filters):
            filters = f"{encoder}.characters.filters.{place}"
            weights[f"{filters}.weight"] = arrays[f"CNN/W_cnn_{place}"].reshape(-1, number).T
            weights[f"{filters}.bias"] = arrays[f"CNN/b_cnn_{place}"]
        for depth in range(config.characters.num_highway_layers):
            highway, group = f"{encoder}.highways.{depth}", f"CNN_high_{depth}"
            # What the file calls "carry" gates the transformed half.
            weights[f"{highway}.gate.weight"] = arrays[f"{group}/W_carry"].T
            weights[f"{highway}.gate.bias"] = arrays[f"{group}/b_carry"]
            weights[f"{highway}.transform.weight"] = arrays[f"{group}/W_transform"].T
            weights[f"{highway}.transform.bias"] = arrays[f"{group}/b_transform"]
        if config.has_token_projection:
            weights[f"{encoder}.projection.weight"] = arrays["CNN_proj/W_proj"].T
            weights[f"{encoder}.projection.bias"] = arrays["CNN_proj/b_proj"]
    output_dim = config.lstm.output_dim
    for direction, name in enumerate(DIRECTIONS):
        for layer in range(config.lstm.num_layers):
            root = _cell_root(direction, layer, is_single=is_single)
            both = _swap_gates(arrays[f"{root}/W_0"].T)
            weights[f"{name}.{layer}.input_weight"] = both[:, :output_dim]
            weights[f"{name}.{layer}.state_weight"] = both[:, output_dim:]
            weights[f"{name}.{layer}.bias"] = _swap_gates(arrays[f"{root}/B"])
            if config.lstm.has_projection:
                weights[f"{name}.{layer}.projection_weight"] = arrays[f"{root}/W_P_0"].T
    return {
        name: torch.from_numpy(np.ascontiguousarray(weight)) for name, weight in weights.items()
    }


def _to_arrays(tensors: dict[str, Tensor], config: ModelConfig) -> dict[str, FloatArray]:
    """Undo `_to_tensors`."""
    weights = {name: _numpy(tensor) for name, tensor in tensors.items()}
    arrays: dict[str, FloatArray] = {}
    if config.characters is not None:
        encoder = "token_encoder"
        arrays["char_embed"] = weights[f"{encoder}.characters.embedding.weight"]
        dim = config.characters.embedding_dim
        for place, (width, number) in enumerate(config.characters.filters):
            filters = f"{encoder}.characters.filters.{place}"
            weight = weights[f"{filters}.weight"]
            arrays[f"CNN/W_cnn_{place}"] = weight.T.reshape(1, width, dim, number)
            arrays[f"CNN/b_cnn_{place}"] = weights[f"{filters}.bias"]
        for depth in range(config.characters.num_highway_layers):
            highway, group = f"{encoder}.highways.{depth}", f"CNN_high_{depth}"
            arrays[f"{group}/W_carry"] = weights[f"{highway}.gate.weight"].T
            arrays[f"{group}/b_carry"] = weights[f"{highway}.gate.bias"]
            arrays[f"{group}/W_transform"] = weights[f"{highway}.transform.weight"].T
            arrays[f"{group}/b_transform"] = weights[f"{highway}.transform.bias"]
        if config.has_token_projection:
            arrays["CNN_proj/W_proj"] = weights[f"{encoder}.projection.weight"].T
            arrays["CNN_proj/b_proj"] = weights[f"{encoder}.projection.bias"]
    for direction, name in enumerate(DIRECTIONS):
        for layer in range(config.lstm.num_layers):
            # The long name even for one layer: it is the one that bilm-tf and AllenNLP load.
            root = _cell_root(direction, layer, is_single=False)
            both = [weights[f"{name}.{layer}.{part}"] for part in ("input_weight", "state_weight")]
            arrays[f"{root}/W_0"] = _swap_gates(np.concatenate(both, axis=1)).T
            bias = _swap_gates(weights[f"{name}.{layer}.bias"])
            arrays[f"{root}/B"] = _move_forget_bias(bias, config.lstm.forget_bias)
            if config.lstm.has_projection:
                arrays[f"{root}/W_P_0"] = weights[f"{name}.{layer}.projection_weight"].T
    return arrays


def _swap_gates(weight: FloatArray) -> FloatArray:
    """Reorder the four blocks of rows."""
    return np.concatenate([np.split(weight, 4)[gate] for gate in GATE_ORDER])


def _move_forget_bias(bias: FloatArray, forget_bias: float) -> FloatArray:
    """Return the bias to store for programs that add 1 to the forget gate when running."""
    if forget_bias == 1.0:
        return bias
    bias = bias.copy()
    np.split(bias, 4)[2] += np.float32(forget_bias - 1.0)
    return bias


def _numpy(tensor: Tensor) -> FloatArray:
    return tensor.detach().cpu().to(torch.float32).numpy()

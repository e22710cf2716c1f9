"""Write models of other programs with random weights, in those programs' own layouts."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from elmore.weights.elmo_model import ElmoModel

Arrays = dict[str, np.ndarray]

SENTENCES = [
    ["The", "café", "is", "<S>", "naïve"],
    ["extraordinarily-long-token-" * 3],
    ["日本語", "</S>", "éééééééééééééééééééééééééé", "我", ""],
    [],
]
CHAR_DIC = "".join(
    f"{entry}\t{place}\n"
    for place, entry in enumerate(
        ["<oov>", "<bos>", "<eos>", "<bow>", "<eow>", "<pad>", *'abcéT我 "']
    )
)
WORD_DIC = "".join(
    f"{entry}\t{place}\n"
    for place, entry in enumerate(
        ["<oov>", "<bos>", "<eos>", "<pad>", "The", "café", "extraor", "我"]
    )
)


def run(
    model: ElmoModel, sentences: list[list[str]], *, dtype: torch.dtype = torch.float64
) -> list[np.ndarray]:
    """Return (1 + layers, tokens, 2D) per sentence; in float64 only the formulas can differ."""
    with single_thread():
        batch = model.batch(sentences)
        layers = model.to(dtype).bilm(batch).layers
    parts = layers.split(batch.lengths.tolist(), dim=1)
    return [part[:, 1:-1].numpy() for part in parts]


@contextmanager
def single_thread() -> Iterator[None]:
    """Compute tiny products here and now: waiting for a second core takes 100 times as long."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(num_threads)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def largest_difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    assert [a.shape for a in ours] == [b.shape for b in theirs]
    return max(float(np.abs(a - b).max(initial=0)) for a, b in zip(ours, theirs, strict=True))


# bilm-tf.


def make_options(*, lstm: dict[str, Any] | None = None, **char_cnn: Any) -> dict[str, Any]:
    """Options of a tiny model whose clips bind."""
    return {
        "lstm": {
            "cell_clip": 0.3,
            "dim": 6,
            "n_layers": 2,
            "proj_clip": 0.3,
            "projection_dim": 4,
            "use_skip_connections": True,
            **(lstm or {}),
        },
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 3},
            "filters": [[1, 2], [2, 3], [4, 2]],
            "max_characters_per_token": 10,
            "n_characters": 262,
            "n_highway": 2,
            **char_cnn,
        },
    }


def make_arrays(options: dict[str, Any], *, seed: int = 0) -> Arrays:
    """Draw the arrays that bilm-tf would dump for these options, under the long names."""
    random = np.random.default_rng(seed)
    lstm, cnn = options["lstm"], options["char_cnn"]
    dim, projection_dim = lstm["dim"], lstm["projection_dim"]
    char_dim = cnn["embedding"]["dim"]
    total = sum(number for _, number in cnn["filters"])
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, char_dim)}
    for i, (width, number) in enumerate(cnn["filters"]):
        shapes[f"CNN/W_cnn_{i}"] = (1, width, char_dim, number)
        shapes[f"CNN/b_cnn_{i}"] = (number,)
    for k in range(cnn.get("n_highway") or 0):
        for part in ("carry", "transform"):
            shapes[f"CNN_high_{k}/W_{part}"] = (total, total)
            shapes[f"CNN_high_{k}/b_{part}"] = (total,)
    if total != projection_dim:
        shapes["CNN_proj/W_proj"] = (total, projection_dim)
        shapes["CNN_proj/b_proj"] = (projection_dim,)
    for direction in (0, 1):
        for layer in range(lstm.get("n_layers", 1)):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes[f"{cell}/W_0"] = (2 * projection_dim, 4 * dim)
            shapes[f"{cell}/B"] = (4 * dim,)
            if dim != projection_dim:
                shapes[f"{cell}/W_P_0"] = (dim, projection_dim)
    return {
        name: random.normal(scale=0.7, size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_bilm_tf_files(
    folder: Path, options: dict[str, Any], arrays: Arrays, *, has_short_names: bool = False
) -> tuple[Path, Path]:
    """Write weights and options as bilm-tf does, with the short names of one layer if asked."""
    folder.mkdir(exist_ok=True)
    weights_path, options_path = folder / "lm_weights.hdf5", folder / "options.json"
    with h5py.File(weights_path, "w") as file:
        for name, array in arrays.items():
            place = name.replace("MultiRNNCell/Cell0/", "") if has_short_names else name
            file.create_dataset(place, array.shape, dtype="float32")[...] = array
    options_path.write_text(json.dumps(options))
    return weights_path, options_path


def read_all_arrays(path: Path) -> Arrays:
    """Return every dataset of a file; assert on the way that it is stored as bilm-tf does."""
    arrays: Arrays = {}

    def visit(name: str, node: Any) -> None:
        assert not node.attrs
        if isinstance(node, h5py.Dataset):
            assert node.dtype == np.dtype("<f4")
            assert node.chunks is None
            arrays[name] = node[...]

    with h5py.File(path) as file:
        assert not file.attrs
        file.visititems(visit)
    return arrays


def assert_equal_arrays(ours: Arrays, theirs: Arrays) -> None:
    assert {name: array.shape for name, array in ours.items()} == {
        name: array.shape for name, array in theirs.items()
    }
    for name, array in theirs.items():
        assert ours[name].tobytes() == array.tobytes(), name


# ELMoForManyLangs.


def make_architecture(
    *, word_dim: int = 3, char_dim: int = 4, encoder: dict[str, Any] | None = None, **embedder: Any
) -> dict[str, Any]:
    """An architecture file of a tiny model whose clips bind."""
    return {
        "encoder": {
            "name": "elmo",
            "projection_dim": 4,
            "cell_clip": 0.3,
            "proj_clip": 0.3,
            "dim": 6,
            "n_layers": 2,
            **(encoder or {}),
        },
        "token_embedder": {
            "name": "cnn",
            "activation": "relu",
            "filters": [[1, 2], [2, 3], [3, 2]],
            "n_highway": 1,
            "word_dim": word_dim,
            "char_dim": char_dim,
            "max_characters_per_token": 9,
            **embedder,
        },
        "classifier": {"name": "sampled_softmax", "n_samples": 8},
        "dropout": 0.1,
    }


def make_many_langs(architecture: dict[str, Any], *, seed: int = 0) -> tuple[Arrays, Arrays]:
    """Draw the token embedder and the encoder of such a model."""
    random = np.random.default_rng(seed)
    token, lstm = architecture["token_embedder"], architecture["encoder"]
    dim, projection_dim = lstm["dim"], lstm["projection_dim"]
    embedder: dict[str, tuple[int, ...]] = {}
    width_of_all = token["word_dim"]
    if token["word_dim"]:
        embedder["word_emb_layer.embedding.weight"] = (WORD_DIC.count("\n"), token["word_dim"])
    if token["char_dim"]:
        embedder["char_emb_layer.embedding.weight"] = (CHAR_DIC.count("\n"), token["char_dim"])
        for i, (width, number) in enumerate(token["filters"]):
            embedder[f"convolutions.{i}.weight"] = (number, token["char_dim"], width)
            embedder[f"convolutions.{i}.bias"] = (number,)
        total = sum(number for _, number in token["filters"])
        for k in range(token["n_highway"]):
            embedder[f"highways._layers.{k}.weight"] = (2 * total, total)
            embedder[f"highways._layers.{k}.bias"] = (2 * total,)
        width_of_all += total
    embedder["projection.weight"] = (projection_dim, width_of_all)
    embedder["projection.bias"] = (projection_dim,)
    encoder: dict[str, tuple[int, ...]] = {}
    for direction in ("forward", "backward"):
        for layer in range(lstm["n_layers"]):
            name = f"{direction}_layer_{layer}"
            encoder[f"{name}.input_linearity.weight"] = (4 * dim, projection_dim)
            encoder[f"{name}.state_linearity.weight"] = (4 * dim, projection_dim)
            encoder[f"{name}.state_linearity.bias"] = (4 * dim,)
            encoder[f"{name}.state_projection.weight"] = (projection_dim, dim)
    draw = lambda shape: random.normal(scale=0.7, size=shape).astype(np.float32)  # noqa: E731
    return (
        {name: draw(shape) for name, shape in embedder.items()},
        {name: draw(shape) for name, shape in encoder.items()},
    )


def write_many_langs_folder(
    folder: Path,
    architecture: dict[str, Any],
    embedder: Arrays,
    encoder: Arrays,
    *,
    is_zip: bool = False,
    has_architecture: bool = True,
) -> Path:
    """Write a folder as the published archives have it: torch 0.4's files, a wrong config_path."""
    folder.mkdir(exist_ok=True)
    for name, arrays in (("token_embedder.pkl", embedder), ("encoder.pkl", encoder)):
        tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
        torch.save(tensors, folder / name, _use_new_zipfile_serialization=is_zip)
    settings = {"config_path": "/home/someone/configs/cnn_tiny.json", "gpu": 0, "lr": 0.001}
    (folder / "config.json").write_text(json.dumps(settings))
    if has_architecture:
        (folder / "cnn_tiny.json").write_text(json.dumps(architecture))
    if architecture["token_embedder"]["char_dim"]:
        (folder / "char.dic").write_text(CHAR_DIC, encoding="utf-8")
    if architecture["token_embedder"]["word_dim"]:
        (folder / "word.dic").write_text(WORD_DIC, encoding="utf-8")
    return folder

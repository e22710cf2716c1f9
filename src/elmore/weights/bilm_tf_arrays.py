"""The names, shapes and meanings of bilm-tf's arrays, and their elmore counterparts."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from elmore.config import ModelConfig
from elmore.weights.hdf5_arrays import FloatArray, Shape

# The file has the gates in TensorFlow's order (input, candidate, forget, output). torch swaps the
# middle two, so the same permutation converts both ways.
GATE_ORDER = [0, 2, 1, 3]
FORGET_GATE = 2
DIRECTIONS = ("forward_lm", "backward_lm")
COLUMNS_AT_ONCE = 64
CHARACTERS = "token_encoder.characters"
WORD_TABLE = "token_encoder.words.weight"
PROJECTION = "token_encoder.projection"


def name_cell(direction: int, layer: int, *, is_single: bool) -> str:
    """Return the group of an LSTM layer; bilm-tf uses a shorter name in single-layer models."""
    middle = "" if is_single else f"MultiRNNCell/Cell{layer}/"
    return f"RNN_{direction}/RNN/{middle}LSTMCell"


def array_shapes(config: ModelConfig, *, is_single: bool) -> dict[str, Shape]:
    """Return the name and shape of every array in the weight file of such a model."""
    shapes: dict[str, Shape] = {}
    characters, lstm = config.characters, config.lstm
    if characters is not None:
        dim, total = characters.embedding_dim, characters.output_dim
        shapes["char_embed"] = (characters.num_units, dim)
        for index, (width, number) in enumerate(characters.filters):
            shapes[f"CNN/W_cnn_{index}"] = (1, width, dim, number)
            shapes[f"CNN/b_cnn_{index}"] = (number,)
        for depth in range(characters.num_highway_layers):
            for part in ("carry", "transform"):
                shapes[f"CNN_high_{depth}/W_{part}"] = (total, total)
                shapes[f"CNN_high_{depth}/b_{part}"] = (total,)
        if config.has_token_projection:
            shapes["CNN_proj/W_proj"] = (total, lstm.output_dim)
            shapes["CNN_proj/b_proj"] = (lstm.output_dim,)
    for direction in range(2):
        for layer in range(lstm.num_layers):
            cell = name_cell(direction, layer, is_single=is_single)
            shapes[f"{cell}/W_0"] = (2 * lstm.output_dim, 4 * lstm.cell_dim)
            shapes[f"{cell}/B"] = (4 * lstm.cell_dim,)
            if lstm.has_projection:
                shapes[f"{cell}/W_P_0"] = (lstm.cell_dim, lstm.output_dim)
    return shapes


def arrays_of_more_layers(config: ModelConfig) -> list[str]:
    """Return arrays that exist only if the file has more layers than the config says."""
    more = [f"{name_cell(0, config.lstm.num_layers, is_single=False)}/W_0"]
    if config.characters is not None:
        more.append(f"CNN/W_cnn_{len(config.characters.filters)}")
        more.append(f"CNN_high_{config.characters.num_highway_layers}/W_carry")
    return more


def to_tensors(
    arrays: Mapping[str, FloatArray], config: ModelConfig, *, is_single: bool
) -> dict[str, Tensor]:
    """Convert the file's arrays to the network's weights; each large one is taken once."""
    weights: dict[str, Tensor] = {}
    if config.characters is not None:
        weights[f"{CHARACTERS}.embedding.weight"] = _to_tensor(arrays["char_embed"])
        for index, (_, number) in enumerate(config.characters.filters):
            kernel = arrays[f"CNN/W_cnn_{index}"].reshape(-1, number)
            weights[f"{CHARACTERS}.filters.{index}.weight"] = _to_tensor(kernel.T)
            weights[f"{CHARACTERS}.filters.{index}.bias"] = _to_tensor(arrays[f"CNN/b_cnn_{index}"])
        for depth in range(config.characters.num_highway_layers):
            highway, group = f"token_encoder.highways.{depth}", f"CNN_high_{depth}"
            # What the file calls "carry" is the gate of the transformed input.
            weights[f"{highway}.gate.weight"] = _to_tensor(arrays[f"{group}/W_carry"].T)
            weights[f"{highway}.gate.bias"] = _to_tensor(arrays[f"{group}/b_carry"])
            weights[f"{highway}.transform.weight"] = _to_tensor(arrays[f"{group}/W_transform"].T)
            weights[f"{highway}.transform.bias"] = _to_tensor(arrays[f"{group}/b_transform"])
        if config.has_token_projection:
            weights[f"{PROJECTION}.weight"] = _to_tensor(arrays["CNN_proj/W_proj"].T)
            weights[f"{PROJECTION}.bias"] = _to_tensor(arrays["CNN_proj/b_proj"])
    output_dim = config.lstm.output_dim
    for direction, name in enumerate(DIRECTIONS):
        for layer in range(config.lstm.num_layers):
            cell = name_cell(direction, layer, is_single=is_single)
            both = arrays[f"{cell}/W_0"]
            weights[f"{name}.{layer}.input_weight"] = _transpose_gates(both[:output_dim])
            weights[f"{name}.{layer}.state_weight"] = _transpose_gates(both[output_dim:])
            weights[f"{name}.{layer}.bias"] = _to_tensor(_swap_gates(arrays[f"{cell}/B"]))
            if config.lstm.has_projection:
                weights[f"{name}.{layer}.projection_weight"] = _to_tensor(arrays[f"{cell}/W_P_0"].T)
    return weights


def to_arrays(tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, FloatArray]:
    """Undo `to_tensors`."""
    weights = {name: to_numpy(tensor) for name, tensor in tensors.items()}
    arrays: dict[str, FloatArray] = {}
    if config.characters is not None:
        arrays["char_embed"] = weights[f"{CHARACTERS}.embedding.weight"]
        dim = config.characters.embedding_dim
        for index, (width, number) in enumerate(config.characters.filters):
            kernel = weights[f"{CHARACTERS}.filters.{index}.weight"].T
            arrays[f"CNN/W_cnn_{index}"] = kernel.reshape(1, width, dim, number)
            arrays[f"CNN/b_cnn_{index}"] = weights[f"{CHARACTERS}.filters.{index}.bias"]
        for depth in range(config.characters.num_highway_layers):
            highway, group = f"token_encoder.highways.{depth}", f"CNN_high_{depth}"
            arrays[f"{group}/W_carry"] = weights[f"{highway}.gate.weight"].T
            arrays[f"{group}/b_carry"] = weights[f"{highway}.gate.bias"]
            arrays[f"{group}/W_transform"] = weights[f"{highway}.transform.weight"].T
            arrays[f"{group}/b_transform"] = weights[f"{highway}.transform.bias"]
        if config.has_token_projection:
            arrays["CNN_proj/W_proj"] = weights[f"{PROJECTION}.weight"].T
            arrays["CNN_proj/b_proj"] = weights[f"{PROJECTION}.bias"]
    for direction, name in enumerate(DIRECTIONS):
        for layer in range(config.lstm.num_layers):
            # The long name even for a single layer, because bilm-tf and AllenNLP load only that.
            cell = name_cell(direction, layer, is_single=False)
            both = [weights[f"{name}.{layer}.{part}"] for part in ("input_weight", "state_weight")]
            arrays[f"{cell}/W_0"] = _swap_gates(np.concatenate(both, axis=1).T)
            bias = _swap_gates(weights[f"{name}.{layer}.bias"])
            arrays[f"{cell}/B"] = _move_forget_bias(bias, config.lstm.forget_bias)
            if config.lstm.has_projection:
                arrays[f"{cell}/W_P_0"] = weights[f"{name}.{layer}.projection_weight"].T
    return arrays


def to_numpy(tensor: Tensor) -> FloatArray:
    """Return a weight as a float array, from any device and precision."""
    # Double precision is kept, because gradients are checked in it.
    dtype = torch.float64 if tensor.dtype is torch.float64 else torch.float32
    return tensor.detach().to(device="cpu", dtype=dtype).numpy()


def _to_tensor(weight: FloatArray) -> Tensor:
    # torch transposes a large matrix several times faster than numpy.
    return torch.from_numpy(weight).contiguous()


def _transpose_gates(weight: FloatArray) -> Tensor:
    """Reorder the four blocks of columns of (I, 4C), and transpose: (4C, I)."""
    transposed = np.empty(weight.shape[::-1], weight.dtype)
    num_cells = len(transposed) // 4
    for gate, block in zip(GATE_ORDER, np.split(transposed, 4), strict=True):
        for first in range(0, num_cells, COLUMNS_AT_ONCE):
            start = gate * num_cells + first
            end = min(start + COLUMNS_AT_ONCE, (gate + 1) * num_cells)
            # Copied first: in the file's array, rows are so far apart that their numbers evict each
            # other from the cache.
            part = np.ascontiguousarray(weight[:, start:end])
            block[first : first + COLUMNS_AT_ONCE] = part.T
    return torch.from_numpy(transposed)


def _swap_gates(weight: FloatArray) -> FloatArray:
    """Reorder the four blocks of the last axis."""
    blocks = np.split(weight, 4, axis=-1)
    return np.concatenate([blocks[gate] for gate in GATE_ORDER], axis=-1)


def _move_forget_bias(bias: FloatArray, forget_bias: float) -> FloatArray:
    """Return the bias to store, as bilm-tf and AllenNLP add 1 to the forget gate themselves."""
    if forget_bias == 1.0:
        return bias
    bias = bias.copy()
    np.split(bias, 4)[FORGET_GATE] += np.float32(forget_bias - 1.0)
    return bias

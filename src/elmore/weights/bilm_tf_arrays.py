"""The names, shapes and meanings of bilm-tf's arrays, and their elmore counterparts."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from elmore.config import ModelConfig
from elmore.kernels.memory import allocate
from elmore.weights.hdf5_arrays import ArrayParts, FloatArray, Shape

# The file has the gates in TensorFlow's order (input, candidate, forget, output). torch swaps the
# middle two, so the same permutation converts both ways.
GATE_ORDER = [0, 2, 1, 3]
FORGET_GATE = 2
DIRECTIONS = ("forward_lm", "backward_lm")
COLUMNS_AT_ONCE = 64
ROWS_AT_ONCE = 64
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


def find_tensors(
    arrays: Mapping[str, ArrayParts], config: ModelConfig, *, is_single: bool
) -> dict[str, Callable[[], Tensor]]:
    """Return a function that reads each of the network's weights from the file's arrays."""
    found: dict[str, Callable[[], Tensor]] = {}
    if config.characters is not None:
        found[f"{CHARACTERS}.embedding.weight"] = partial(read_whole, arrays["char_embed"])
        for index in range(len(config.characters.filters)):
            convolution = f"{CHARACTERS}.filters.{index}"
            found[f"{convolution}.weight"] = partial(_read_kernel, arrays[f"CNN/W_cnn_{index}"])
            found[f"{convolution}.bias"] = partial(read_whole, arrays[f"CNN/b_cnn_{index}"])
        for depth in range(config.characters.num_highway_layers):
            highway, group = f"token_encoder.highways.{depth}", f"CNN_high_{depth}"
            # What the file calls "carry" is the gate of the transformed input.
            for part, theirs in (("gate", "carry"), ("transform", "transform")):
                weight, bias = arrays[f"{group}/W_{theirs}"], arrays[f"{group}/b_{theirs}"]
                found[f"{highway}.{part}.weight"] = partial(_read_transposed, weight)
                found[f"{highway}.{part}.bias"] = partial(read_whole, bias)
        if config.has_token_projection:
            found[f"{PROJECTION}.weight"] = partial(_read_transposed, arrays["CNN_proj/W_proj"])
            found[f"{PROJECTION}.bias"] = partial(read_whole, arrays["CNN_proj/b_proj"])
    parts = (("input_weight", 0), ("state_weight", config.lstm.output_dim))
    for direction, name in enumerate(DIRECTIONS):
        for layer in range(config.lstm.num_layers):
            cell = name_cell(direction, layer, is_single=is_single)
            for part, first in parts:
                rows = range(first, first + config.lstm.output_dim)
                read = partial(_read_transposed, arrays[f"{cell}/W_0"], rows, order=GATE_ORDER)
                found[f"{name}.{layer}.{part}"] = read
            found[f"{name}.{layer}.bias"] = partial(_read_gates, arrays[f"{cell}/B"])
            if config.lstm.has_projection:
                projection = partial(_read_transposed, arrays[f"{cell}/W_P_0"])
                found[f"{name}.{layer}.projection_weight"] = projection
    return found


def to_arrays(tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, FloatArray]:
    """Undo what the functions of `find_tensors` do."""
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


def read_whole(array: ArrayParts) -> Tensor:
    """Read an array as it is."""
    return torch.from_numpy(array[:])


def _read_gates(bias: ArrayParts) -> Tensor:
    return torch.from_numpy(_swap_gates(bias[:]))


def _read_kernel(kernel: ArrayParts) -> Tensor:
    """Return the (F, w * E) weights of filters, from (1, w, E, F)."""
    return torch.from_numpy(kernel[:]).flatten(0, 2).T.contiguous()


def _read_transposed(
    array: ArrayParts, rows: range | None = None, *, order: Sequence[int] = (0,)
) -> Tensor:
    """Read some rows, by default all of (I, O), and transpose them: (O, I).

    `order` is that of equal blocks of columns. Few rows are read at once, so that there is hardly
    more in memory than the result.
    """
    num_rows, num_columns = array.shape
    rows = range(num_rows) if rows is None else rows
    at_once = max(ROWS_AT_ONCE, getattr(array, "rows_per_chunk", 1))
    # Not of the C library, which would keep the memory of a weight that was packed and freed.
    memory = allocate(4 * num_columns * len(rows))
    found = memory.view(np.float32).reshape(num_columns, len(rows))
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        _transpose(array[some.start : some.stop], found[:, start : start + at_once], order)
    return torch.from_numpy(found)


def _transpose(part: FloatArray, to: FloatArray, order: Sequence[int]) -> None:
    """Write the transpose of `part` into `to`, with blocks of columns in this order."""
    sources = np.split(part, len(order), axis=1)
    for block, source in zip(np.split(to, len(order)), order, strict=True):
        for first in range(0, len(block), COLUMNS_AT_ONCE):
            columns = slice(first, first + COLUMNS_AT_ONCE)
            # Copied first: in the file's array, rows are so far apart that their numbers evict each
            # other from the cache.
            block[columns] = np.ascontiguousarray(sources[source][:, columns]).T


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

"""ELMo computed slowly from its formulas: an oracle that shares no code with the library.

One sentence, one token, one step at a time; no batches, no padding, no masks. Whatever the library
computes in batches must agree with this. The names and layouts are those of the published files.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

Array = np.ndarray
Arrays = dict[str, Array]
State = tuple[Array, Array]  # h (P,) projected and clipped but without the residual; c (H,)

ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}


def sigmoid(x: Array) -> Array:
    # Written with tanh because exp overflows, and the test run makes warnings errors.
    return 0.5 * (1 + np.tanh(0.5 * x))


def clip(x: Array, bound: float | None) -> Array:
    return x if bound is None else np.clip(x, -bound, bound)


def convolve(embedded: Array, convolutions: list[tuple[Array, Array]], activation: str) -> Array:
    """Turn (characters, char_dim) into (filters,); a kernel is (width, char_dim, filters)."""
    pooled = []
    for kernel, bias in convolutions:
        width, _, num_filters = kernel.shape
        flat_kernel = kernel.reshape(-1, num_filters)
        starts = range(len(embedded) - width + 1)
        responses = [embedded[s : s + width].ravel() @ flat_kernel + bias for s in starts]
        pooled.append(ACTIVATIONS[activation](np.max(responses, axis=0)))
    return np.concatenate(pooled)


# The LSTM, in one form for both file formats.


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One layer of one direction; gates in the order input, forget, candidate, output."""

    input_weight: Array  # (P, 4H)
    state_weight: Array  # (P, 4H)
    bias: Array  # (4H,), the forget gate's +1 included
    projection: Array | None  # (H, P)
    cell_clip: float | None
    projection_clip: float | None

    def zero_state(self) -> State:
        dtype = self.bias.dtype
        return np.zeros(len(self.state_weight), dtype), np.zeros(len(self.bias) // 4, dtype)

    def step(self, x: Array, state: State) -> State:
        hidden, memory = state
        gates = x @ self.input_weight + hidden @ self.state_weight + self.bias
        input_gate, forget_gate, candidate, output_gate = np.split(gates, 4)
        memory = sigmoid(forget_gate) * memory + sigmoid(input_gate) * np.tanh(candidate)
        memory = clip(memory, self.cell_clip)
        hidden = sigmoid(output_gate) * np.tanh(memory)
        if self.projection is not None:  # TensorFlow's LSTMCell clips only what it projects
            hidden = clip(hidden @ self.projection, self.projection_clip)
        return hidden, memory


def run_direction(
    inputs: Array, cells: list[Cell], states: list[State], has_residuals: bool
) -> tuple[list[Array], list[State]]:
    """Read (tokens, P) from first to last; return each layer's (tokens, P) and final state."""
    layers, last_states = [], []
    for depth, cell in enumerate(cells):
        state, outputs = states[depth], []
        for x in inputs:
            state = cell.step(x, state)
            is_added = has_residuals and depth > 0
            outputs.append(state[0] + x if is_added else state[0])
        inputs = np.stack(outputs)
        layers.append(inputs)
        last_states.append(state)
    return layers, last_states


def read_sentence(
    tokens: Array,
    directions: list[list[Cell]],
    *,
    states: list[list[State]] | None,
    has_residuals: bool,
) -> tuple[Array, list[list[State]]]:
    """Return the layers of a sentence without its boundaries, (1 + layers, tokens, 2P)."""
    if states is None:
        states = [[cell.zero_state() for cell in cells] for cells in directions]
    layers = [np.concatenate([tokens, tokens], axis=1)]
    forward_lm, forward_states = run_direction(tokens, directions[0], states[0], has_residuals)
    backward_lm, backward_states = run_direction(
        tokens[::-1], directions[1], states[1], has_residuals
    )
    for forward_layer, backward_layer in zip(forward_lm, backward_lm, strict=True):
        layers.append(np.concatenate([forward_layer, backward_layer[::-1]], axis=1))
    return np.stack(layers)[:, 1:-1], [forward_states, backward_states]


# bilm-tf, and AllenNLP, which reads the same files.


def bilm_tf_char_ids(token: str, *, max_chars: int) -> list[int]:
    """Return the ids as rows of `char_embed`, that is, before inference adds 1 for its mask.

    >>> bilm_tf_char_ids("hé", max_chars=6), bilm_tf_char_ids("<S>", max_chars=4)
    ([258, 104, 195, 169, 259, 260], [258, 256, 259, 260])
    """
    boundaries = {"<S>": [256], "</S>": [257]}
    spelled = boundaries.get(token, list(token.encode("utf-8", "ignore")))
    ids = [258, *spelled[: max_chars - 2], 259]
    return ids + [260] * (max_chars - len(ids))


def bilm_tf_token(arrays: Arrays, options: dict[str, Any], token: str) -> Array:
    """Return the context-free vector of a token, (P,)."""
    cnn = options["char_cnn"]
    ids = bilm_tf_char_ids(token, max_chars=cnn["max_characters_per_token"])
    embedded = arrays["char_embed"][ids]
    convolutions = [
        (arrays[f"CNN/W_cnn_{i}"][0], arrays[f"CNN/b_cnn_{i}"]) for i in range(len(cnn["filters"]))
    ]
    x = convolve(embedded, convolutions, cnn["activation"])
    for k in range(cnn.get("n_highway") or 0):
        high = f"CNN_high_{k}"
        # Despite its name, "carry" lets the transformed part through.
        gate = sigmoid(x @ arrays[f"{high}/W_carry"] + arrays[f"{high}/b_carry"])
        transformed = x @ arrays[f"{high}/W_transform"] + arrays[f"{high}/b_transform"]
        x = gate * np.maximum(transformed, 0) + (1 - gate) * x
    if len(x) != options["lstm"]["projection_dim"]:
        x = x @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]
    return x


def bilm_tf_cell(arrays: Arrays, options: dict[str, Any], *, direction: int, depth: int) -> Cell:
    lstm = options["lstm"]
    name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{depth}/LSTMCell"

    def reorder(columns: Array) -> Array:
        input_gate, candidate, forget_gate, output_gate = np.split(columns, 4, axis=-1)
        return np.concatenate([input_gate, forget_gate, candidate, output_gate], axis=-1)

    weight, bias = reorder(arrays[f"{name}/W_0"]), reorder(arrays[f"{name}/B"])
    bias[lstm["dim"] : 2 * lstm["dim"]] += 1  # TensorFlow adds it at run time
    is_projected = lstm["dim"] != lstm["projection_dim"]
    return Cell(
        input_weight=weight[: lstm["projection_dim"]],
        state_weight=weight[lstm["projection_dim"] :],
        bias=bias,
        projection=arrays[f"{name}/W_P_0"] if is_projected else None,
        cell_clip=lstm.get("cell_clip"),
        projection_clip=lstm.get("proj_clip"),
    )


def bilm_tf_layers(
    arrays: Arrays,
    options: dict[str, Any],
    rows: list[list[list[str]]],
    *,
    carry: bool,
    dtype: DTypeLike = np.float64,
) -> list[list[Array]]:
    """Return (1 + layers, tokens, 2P) for `rows[r][s]`; `carry` keeps the state along a row."""
    arrays = {name: np.asarray(array, dtype) for name, array in arrays.items()}
    directions = [
        [
            bilm_tf_cell(arrays, options, direction=direction, depth=depth)
            for depth in range(options["lstm"]["n_layers"])
        ]
        for direction in (0, 1)
    ]
    results = []
    for row in rows:
        states = None
        results.append([])
        for sentence in row:
            tokens = [bilm_tf_token(arrays, options, token) for token in ("<S>", *sentence, "</S>")]
            layers, states = read_sentence(
                np.stack(tokens),
                directions,
                states=states if carry else None,
                has_residuals=options["lstm"].get("use_skip_connections", False),
            )
            results[-1].append(layers)
    return results


# ELMoForManyLangs.


def read_dic(text: str) -> dict[str, int]:
    r"""Read `char.dic` or `word.dic`; stripping a line eats an ideographic space.

    >>> read_dic("a\t0\n\u3000\t1\n") == {"a": 0, "\u3000": 1}
    True
    """
    ids = {}
    for line in text.split("\n"):
        match line.strip().split("\t"):
            case [""]:
                continue
            case [number]:
                ids["\u3000"] = int(number)
            case [token, number]:
                ids[token] = int(number)
            case fields:
                raise ValueError(f"expected a token and its id, got {fields}")
    return ids


def many_langs_char_ids(token: str, *, char_dic: dict[str, int], max_chars: int) -> list[int]:
    """Spell a token that is short enough already."""
    characters = [token] if token in ("<bos>", "<eos>") else list(token)
    # The published weights were trained with the two names swapped.
    first, last = char_dic["<eow>"], char_dic["<bow>"]
    ids = [first, *(char_dic.get(c, char_dic["<oov>"]) for c in characters), last]
    return ids + [char_dic["<pad>"]] * (max_chars - len(ids))


def many_langs_characters(weights: Arrays, embedder: dict[str, Any], ids: list[int]) -> Array:
    """Return the character part of a token's vector, (filters,)."""
    embedded = weights["char_emb_layer.embedding.weight"][ids]
    convolutions = [
        (weights[f"convolutions.{i}.weight"].transpose(2, 1, 0), weights[f"convolutions.{i}.bias"])
        for i in range(len(embedder["filters"]))
    ]
    x = convolve(embedded, convolutions, embedder["activation"])
    for k in range(embedder.get("n_highway") or 0):
        high = f"highways._layers.{k}"
        nonlinear, gate = np.split(weights[f"{high}.weight"] @ x + weights[f"{high}.bias"], 2)
        x = sigmoid(gate) * x + (1 - sigmoid(gate)) * np.maximum(nonlinear, 0)
    return x


def many_langs_token(
    weights: Arrays,
    embedder: dict[str, Any],
    token: str,
    *,
    char_dic: dict[str, int] | None,
    word_dic: dict[str, int] | None,
) -> Array:
    """Return the context-free vector of a token, (P,)."""
    parts = []
    if word_dic is not None:
        word_id = word_dic.get(token, word_dic["<oov>"])
        parts.append(weights["word_emb_layer.embedding.weight"][word_id])
    if char_dic is not None:
        max_chars = embedder["max_characters_per_token"]
        ids = many_langs_char_ids(token, char_dic=char_dic, max_chars=max_chars)
        parts.append(many_langs_characters(weights, embedder, ids))
    return weights["projection.weight"] @ np.concatenate(parts) + weights["projection.bias"]


def many_langs_cell(encoder: Arrays, config: dict[str, Any], *, name: str) -> Cell:
    return Cell(
        input_weight=encoder[f"{name}.input_linearity.weight"].T,
        state_weight=encoder[f"{name}.state_linearity.weight"].T,
        bias=encoder[f"{name}.state_linearity.bias"],
        projection=encoder[f"{name}.state_projection.weight"].T,
        cell_clip=config["encoder"].get("cell_clip"),
        projection_clip=config["encoder"].get("proj_clip"),
    )


def many_langs_layers(
    token_embedder: Arrays,
    encoder: Arrays,
    config: dict[str, Any],
    sentences: list[list[str]],
    *,
    char_dic: dict[str, int] | None,
    word_dic: dict[str, int] | None,
    dtype: DTypeLike = np.float64,
) -> list[Array]:
    """Return (1 + layers, tokens, 2P) per sentence; `config` is the JSON naming both parts."""
    embedder = config["token_embedder"]
    weights = {name: np.asarray(array, dtype) for name, array in token_embedder.items()}
    encoder = {name: np.asarray(array, dtype) for name, array in encoder.items()}
    directions = [
        [
            many_langs_cell(encoder, config, name=f"{direction}_layer_{depth}")
            for depth in range(config["encoder"]["n_layers"])
        ]
        for direction in ("forward", "backward")
    ]
    results = []
    for sentence in sentences:
        # Cut before both lookups: a long word is searched for in word.dic by its cut form.
        cut = [token[: embedder["max_characters_per_token"] - 2] for token in sentence]
        tokens = [
            many_langs_token(weights, embedder, token, char_dic=char_dic, word_dic=word_dic)
            for token in ("<bos>", *cut, "<eos>")
        ]
        layers, _ = read_sentence(np.stack(tokens), directions, states=None, has_residuals=True)
        results.append(layers)
    return results


# Around the networks.


def scalar_mix(
    layers: Sequence[Array],
    *,
    weights: Array,
    gamma: float,
    layer_norm: bool = False,
    mask: Array | None = None,
    dtype: DTypeLike = np.float64,
) -> Array:
    """Mix layers of (B, T, D) into one; `mask` (B, T) only chooses what the norm is taken over."""
    layers = [np.asarray(layer, dtype) for layer in layers]
    weights = np.asarray(weights, dtype)
    shares = np.exp(weights - weights.max())
    shares = shares / shares.sum()
    if layer_norm:
        layers = [normalize(layer, mask=mask) for layer in layers]
    return gamma * sum(share * layer for share, layer in zip(shares, layers, strict=True))


def normalize(layer: Array, *, mask: Array | None) -> Array:
    """Use one mean and one variance for the whole batch, as AllenNLP does."""
    seen = layer if mask is None else layer[np.asarray(mask, bool)]
    return (layer - seen.mean()) / np.sqrt(seen.var() + 1e-12)


def numerical_gradient(
    function: Callable[[Array], float], array: Array, *, index: int | tuple[int, ...], step: float
) -> float:
    """Return the central difference of `function(array)` in `array[index]`, left as it was.

    >>> round(numerical_gradient(lambda x: x[0] ** 2, np.array([3.0]), index=0, step=1e-3), 6)
    6.0
    """
    entry = array[index].copy()
    try:
        array[index] = entry + step
        upper, value_above = float(array[index]), float(function(array))
        array[index] = entry - step
        lower, value_below = float(array[index]), float(function(array))
    finally:
        array[index] = entry
    # Not 2 * step: what a float32 array holds is a rounded step.
    return (value_above - value_below) / (upper - lower)

"""The names, shapes and meanings of ELMoForManyLangs' weights, and their elmore counterparts."""

from collections.abc import Mapping

from torch import Tensor

from elmore.config import ModelConfig
from elmore.errors import ModelError

Weights = Mapping[str, Tensor]

WORD_TABLE = "word_emb_layer.embedding.weight"
CHAR_TABLE = "char_emb_layer.embedding.weight"
DIRECTIONS = (("forward_lm", "forward_layer"), ("backward_lm", "backward_layer"))
LSTM_PARTS = (
    ("input_weight", "input_linearity.weight"),
    ("state_weight", "state_linearity.weight"),
    ("bias", "state_linearity.bias"),
    ("projection_weight", "state_projection.weight"),
)


def count_layers(weights: Weights, pattern: str) -> int:
    """Count the names that match `pattern`, numbered from 0 without gaps."""
    number = 0
    while pattern.format(number) in weights:
        number += 1
    return number


def table_shape(weights: Weights, name: str) -> tuple[int, int]:
    """Return the number of rows and columns of a matrix."""
    rows, columns = _find(weights, name, num_axes=2).shape
    return rows, columns


def read_filters(embedder: Weights) -> tuple[tuple[int, int], ...]:
    """Return the character filters as pairs of width and number."""
    shapes = [
        _find(embedder, f"convolutions.{index}.weight", num_axes=3).shape
        for index in range(count_layers(embedder, "convolutions.{}.weight"))
    ]
    return tuple((width, number) for number, _, width in shapes)


def to_tensors(embedder: Weights, encoder: Weights, config: ModelConfig) -> dict[str, Tensor]:
    """Rename and reshape the folder's weights for our network, which checks their shapes."""
    embedder, encoder = dict(embedder), dict(encoder)
    tensors: dict[str, Tensor] = {}
    if config.words is not None:
        tensors["token_encoder.words.weight"] = _take(embedder, WORD_TABLE, num_axes=2)
    if config.characters is not None:
        characters = "token_encoder.characters"
        tensors[f"{characters}.embedding.weight"] = _take(embedder, CHAR_TABLE, num_axes=2)
        for index in range(len(config.characters.filters)):
            kernel = _take(embedder, f"convolutions.{index}.weight", num_axes=3)
            bias = _take(embedder, f"convolutions.{index}.bias", num_axes=1)
            # Theirs is (filters, char dim, width); ours is (filters, width * char dim).
            tensors[f"{characters}.filters.{index}.weight"] = kernel.transpose(1, 2).flatten(1)
            tensors[f"{characters}.filters.{index}.bias"] = bias
        for depth in range(config.characters.num_highway_layers):
            for part, num_axes in (("weight", 2), ("bias", 1)):
                both = _take(embedder, f"highways._layers.{depth}.{part}", num_axes=num_axes)
                half = len(both) // 2
                highway = f"token_encoder.highways.{depth}"
                tensors[f"{highway}.transform.{part}"] = both[:half].clone()
                # Their gate is the share of the input, ours the share of the transformed input.
                tensors[f"{highway}.gate.{part}"] = -both[half:]
    tensors["token_encoder.projection.weight"] = _take(embedder, "projection.weight", num_axes=2)
    tensors["token_encoder.projection.bias"] = _take(embedder, "projection.bias", num_axes=1)
    for ours, theirs in DIRECTIONS:
        for layer in range(config.lstm.num_layers):
            for part, name in LSTM_PARTS:
                num_axes = 1 if part == "bias" else 2
                weight = _take(encoder, f"{theirs}_{layer}.{name}", num_axes=num_axes)
                tensors[f"{ours}.{layer}.{part}"] = weight
    for name in (*embedder, *encoder):
        raise ModelError(f"unexpected weight {name!r:.60}; download the model again")
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _take(weights: dict[str, Tensor], name: str, *, num_axes: int) -> Tensor:
    """Remove a weight and return it, so that only unused weights are left in the end."""
    weight = _find(weights, name, num_axes=num_axes)
    del weights[name]
    return weight


def _find(weights: Weights, name: str, *, num_axes: int) -> Tensor:
    if name not in weights or weights[name].dim() != num_axes:
        found = f"shape {tuple(weights[name].shape)}" if name in weights else "none"
        raise ModelError(
            f"expected the weight {name!r} to have {num_axes} axes, got {found}; "
            "download the model again"
        )
    return weights[name]

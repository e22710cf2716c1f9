"""The token encoder as ONNX operations: character CNN, highway layers, word vector, projection.

Shapes: N tokens with markers and padding, C characters, E char dim, F filters, D the token vector.
"""

from elmore import ElmoModel
from elmore.export.onnx.graph import Graph
from elmore.export.onnx.weights import Weights


def add_token_encoder(
    graph: Graph, model: ElmoModel, weights: Weights, *, char_ids: str | None, word_ids: str | None
) -> str:
    """Encode (N, C) char ids, (N,) word ids or both as (N, D)."""
    parts = []
    if word_ids is not None:
        words = graph.weight("words", weights.take("token_encoder.words.weight"))
        parts.append(graph.add("Gather", words, word_ids, axis=0))
    if char_ids is not None:
        parts.append(_add_characters(graph, model, weights, char_ids))
    tokens = graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    if model.config.has_token_projection:
        tokens = _add_linear(graph, weights, "token_encoder.projection", tokens)
    return tokens


def _add_characters(graph: Graph, model: ElmoModel, weights: Weights, char_ids: str) -> str:
    """Reduce (N, C) char ids to (N, F)."""
    config = model.config.characters
    assert config is not None
    name = "token_encoder.characters"
    embedding = graph.weight("char_embedding", weights.take(f"{name}.embedding.weight"))
    chars = graph.add("Gather", embedding, char_ids, axis=0)  # (N, C, E)
    chars = graph.add("Transpose", chars, perm=[0, 2, 1])
    strongest = []
    for index, (width, number) in enumerate(config.filters):
        filters = weights.take(f"{name}.filters.{index}.weight")  # (F, width * E)
        kernel = filters.reshape(number, width, -1).transpose(0, 2, 1).copy()
        responses = graph.add(
            "Conv",
            chars,
            graph.weight(f"filters_{index}", kernel),
            graph.weight(f"filters_{index}_bias", weights.take(f"{name}.filters.{index}.bias")),
        )
        strongest.append(graph.add("ReduceMax", responses, axes=[2], keepdims=0))
    x = graph.add("Concat", *strongest, axis=1)
    x = graph.add("Tanh" if config.activation == "tanh" else "Relu", x)
    for depth in range(config.num_highway_layers):
        x = _add_highway(graph, weights, f"token_encoder.highways.{depth}", x)
    return x


def _add_highway(graph: Graph, weights: Weights, name: str, x: str) -> str:
    """Add `gate * relu(transform(x)) + (1 - gate) * x`."""
    gate = graph.add("Sigmoid", _add_linear(graph, weights, f"{name}.gate", x))
    transformed = graph.add("Relu", _add_linear(graph, weights, f"{name}.transform", x))
    carried = graph.add("Mul", graph.add("Sub", graph.number(1.0), gate), x)
    return graph.add("Add", graph.add("Mul", gate, transformed), carried)


def _add_linear(graph: Graph, weights: Weights, name: str, x: str) -> str:
    weight = graph.weight(f"{name}.weight", weights.take(f"{name}.weight").T.copy())
    bias = graph.weight(f"{name}.bias", weights.take(f"{name}.bias"))
    return graph.add("Add", graph.add("MatMul", x, weight), bias)

"""A whole biLM as an ONNX graph.

Shapes: B sentences, T tokens of the longest, C characters, L LSTM layers, D one direction.
"""

from importlib import metadata

import numpy as np
from onnx import ModelProto, helper

from elmore import ElmoModel
from elmore.export.onnx.graph import Graph, describe
from elmore.export.onnx.lstm import add_lstm
from elmore.export.onnx.markers import add_markers, drop_markers, find_length
from elmore.export.onnx.tokens import add_token_encoder
from elmore.export.onnx.weights import Weights

# onnxruntime reads these versions since 1.12 of 2022.
OPERATIONS_VERSION = 17
FILE_VERSION = 8


def make_onnx(model: ElmoModel) -> ModelProto:
    """Convert a biLM to ONNX.

    Inputs are `char_ids` (B, T, C), `word_ids` (B, T) or both, whichever the model reads, and
    `lengths` (B,), all int64 and without sentence markers. The output `layers` (B, L + 1, T, 2D) is
    what `embed(..., layers="all")` gives for each sentence, with zeros at padding.
    """
    graph = Graph("elmo")
    weights = Weights(model)
    config = model.config
    id_shapes: dict[str, list[int]] = {}
    if config.characters is not None:
        id_shapes["char_ids"] = [config.characters.max_chars]
    if config.words is not None:
        id_shapes["word_ids"] = []
    markers = model.speller.spell([], with_markers=True)
    ids = {}
    for name, id_shape in id_shapes.items():
        begin, end = getattr(markers, name).numpy()
        marked = add_markers(
            graph, name, lengths="lengths", begin=begin, end=end, id_shape=id_shape
        )
        num_tokens = find_length(graph, marked, axis=1)
        ids[name] = graph.add("Reshape", marked, graph.integers([-1, *id_shape]))
    tokens = add_token_encoder(
        graph, model, weights, char_ids=ids.get("char_ids"), word_ids=ids.get("word_ids")
    )
    num_sentences = find_length(graph, "lengths", axis=0)
    dim = graph.integers([config.lstm.output_dim])
    shape = graph.add("Concat", num_sentences, num_tokens, dim, axis=0)
    tokens = graph.add("Transpose", graph.add("Reshape", tokens, shape), perm=[1, 0, 2])
    layers = _add_layers(graph, model, weights, tokens=tokens, num_sentences=num_sentences)
    weights.check_all_used()
    dims: list[int | str] = ["sentences", config.num_mixed_layers, "tokens", config.vector_dim]
    made = graph.finish(
        [
            *(
                describe(name, np.int64, ["sentences", "tokens", *id_shape])
                for name, id_shape in id_shapes.items()
            ),
            describe("lengths", np.int64, ["sentences"]),
        ],
        [(drop_markers(graph, layers, lengths="lengths"), describe("layers", np.float32, dims))],
    )
    return helper.make_model(
        made,
        ir_version=FILE_VERSION,
        opset_imports=[helper.make_opsetid("", OPERATIONS_VERSION)],
        producer_name="elmore",
        producer_version=metadata.version("elmore"),
    )


def _add_layers(
    graph: Graph, model: ElmoModel, weights: Weights, *, tokens: str, num_sentences: str
) -> str:
    """Read (T, B, D) tokens, with markers, in both directions; return (L + 1, T, B, 2D)."""
    config = model.config.lstm
    lengths = graph.add("Add", "lengths", graph.integers(2))

    def reverse(x: str) -> str:
        return graph.add("ReverseSequence", x, lengths, time_axis=0, batch_axis=1)

    inputs = [tokens, reverse(tokens)]
    layers = [[tokens, tokens]]
    for depth in range(config.num_layers):
        outputs = [
            add_lstm(
                graph,
                model,
                weights,
                direction=direction,
                depth=depth,
                x=x,
                num_sentences=num_sentences,
            )
            for direction, x in enumerate(inputs)
        ]
        if config.has_residuals and depth > 0:
            outputs = [graph.add("Add", y, x) for y, x in zip(outputs, inputs, strict=True)]
        inputs = outputs
        layers.append([outputs[0], reverse(outputs[1])])
    joined = [graph.add("Concat", *directions, axis=2) for directions in layers]
    stacked = [graph.add("Unsqueeze", layer, graph.integers([0])) for layer in joined]
    return graph.add("Concat", *stacked, axis=0)

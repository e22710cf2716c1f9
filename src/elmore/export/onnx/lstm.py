"""One LSTM layer of one direction as ONNX operations.

ONNX has an LSTM of its own, but without a projection, and its clip applies to the gates instead of
the cells. So each layer is a Scan: a loop over steps whose body is a graph.

Shapes: T tokens with markers, B sentences, D input, C cells, P output.
"""

import numpy as np
from onnx import GraphProto

from elmore import ElmoModel
from elmore.export.onnx.graph import Graph, describe
from elmore.export.onnx.weights import Weights


def add_lstm(
    graph: Graph,
    model: ElmoModel,
    weights: Weights,
    *,
    direction: int,
    depth: int,
    x: str,
    num_sentences: str,
) -> str:
    """Read (T, B, D) from first to last; return (T, B, P)."""
    config = model.config.lstm
    name = f"{('forward_lm', 'backward_lm')[direction]}.{depth}"
    bias = weights.take(f"{name}.bias").copy()
    bias[config.cell_dim : 2 * config.cell_dim] += np.float32(config.forget_bias)
    input_weight = graph.weight(f"{name}.input", weights.take(f"{name}.input_weight").T.copy())
    gates = graph.add("MatMul", x, input_weight)
    gates = graph.add("Add", gates, graph.weight(f"{name}.bias", bias))

    def start_from(state: str) -> str:
        initial = weights.take(f"initial_{state}")[direction, depth][None]
        shape = graph.add("Concat", num_sentences, graph.integers([1]), axis=0)
        return graph.add("Expand", graph.weight(f"{name}.{state}", initial), shape)

    state_weight = graph.weight(f"{name}.state", weights.take(f"{name}.state_weight").T.copy())
    projection = None
    if config.has_projection:
        matrix = weights.take(f"{name}.projection_weight").T.copy()
        projection = graph.weight(f"{name}.projection", matrix)
    body = _make_step(f"{name}.step", model, state_weight=state_weight, projection=projection)
    _, _, outputs = graph.add_many(
        "Scan",
        start_from("hidden"),
        start_from("cell"),
        gates,
        num_outputs=3,
        body=body,
        num_scan_inputs=1,
    )
    return outputs


def _make_step(
    name: str, model: ElmoModel, *, state_weight: str, projection: str | None
) -> GraphProto:
    """Make the body of the loop; it uses the weights of the graph around it."""
    config = model.config.lstm
    step = Graph(name)
    hidden = describe(f"{name}.hidden", np.float32, ["sentences", config.output_dim])
    cell = describe(f"{name}.cell", np.float32, ["sentences", config.cell_dim])
    of_input = describe(f"{name}.gates", np.float32, ["sentences", 4 * config.cell_dim])
    gates = step.add("Add", step.add("MatMul", hidden.name, state_weight), of_input.name)
    sizes = step.integers([config.cell_dim] * 4)
    write, keep, candidate, show = step.add_many("Split", gates, sizes, num_outputs=4, axis=1)
    kept = step.add("Mul", step.add("Sigmoid", keep), cell.name)
    written = step.add("Mul", step.add("Sigmoid", write), step.add("Tanh", candidate))
    new_cell = _clip(step, step.add("Add", kept, written), config.cell_clip)
    output = step.add("Mul", step.add("Sigmoid", show), step.add("Tanh", new_cell))
    if projection is not None:
        output = _clip(step, step.add("MatMul", output, projection), config.output_clip)
    return step.finish(
        [hidden, cell, of_input],
        [
            (output, describe(f"{name}.new_hidden", np.float32, ["sentences", config.output_dim])),
            (new_cell, describe(f"{name}.new_cell", np.float32, ["sentences", config.cell_dim])),
            (output, describe(f"{name}.output", np.float32, ["sentences", config.output_dim])),
        ],
    )


def _clip(graph: Graph, x: str, bound: float | None) -> str:
    if bound is None:
        return x
    return graph.add("Clip", x, graph.number(-bound), graph.number(bound))

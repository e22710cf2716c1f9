"""An ONNX graph under construction: add an operation, get the name of its result."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper


class Graph:
    """Operations in order, and the constants that they use."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, TensorProto] = {}

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation with one result."""
        return self.add_many(operation, *inputs, num_outputs=1, **attributes)[0]

    def add_many(
        self, operation: str, *inputs: str, num_outputs: int, **attributes: Any
    ) -> list[str]:
        """Add an operation with several results."""
        prefix = f"{self.name}.{operation.lower()}_{len(self._nodes)}"
        outputs = [f"{prefix}.{index}" for index in range(num_outputs)]
        self._nodes.append(
            helper.make_node(operation, list(inputs), outputs, name=prefix, **attributes)
        )
        return outputs

    def weight(self, name: str, values: ArrayLike) -> str:
        """Store a weight in single precision."""
        return self._store(name, np.asarray(values, np.float32))

    def integers(self, values: ArrayLike) -> str:
        """Store integers, once for equal ones."""
        array = np.asarray(values, np.int64)
        digits = "_".join(map(str, array.reshape(-1).tolist()))
        return self._store(f"integers_{array.ndim}d_{digits}", array)

    def number(self, value: float) -> str:
        """Store one number in single precision."""
        return self._store(f"number_{value}", np.asarray(value, np.float32))

    def _store(self, name: str, array: Any) -> str:
        full_name = f"{self.name}.{name}"
        if full_name not in self._constants:
            self._constants[full_name] = numpy_helper.from_array(array, full_name)
        return full_name

    def finish(
        self, inputs: Sequence[ValueInfoProto], outputs: Sequence[tuple[str, ValueInfoProto]]
    ) -> GraphProto:
        """Return the graph; `outputs` are pairs of a result and its description."""
        for result, description in outputs:
            self._nodes.append(helper.make_node("Identity", [result], [description.name]))
        return helper.make_graph(
            self._nodes,
            self.name,
            list(inputs),
            [description for _, description in outputs],
            initializer=list(self._constants.values()),
        )


def describe(name: str, kind: type[np.generic], shape: Sequence[int | str]) -> ValueInfoProto:
    """Describe an input or output; a string in its shape names a length that is not fixed."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return helper.make_tensor_value_info(name, number, list(shape))

"""A biLM's LSTMs, packed for the native kernel."""

from collections.abc import Hashable, Iterable, Sequence

import torch
from torch import Tensor

from elmore.config import Precision
from elmore.kernels.library import Kernel
from elmore.kernels.reading import LayerWeights, PackedLayer, PackedReader, ReadingPlan
from elmore.model.lstm import ProjectedLSTM
from elmore.model.packing import Packing
from elmore.model.state import BiLMOutput, BiLMState


@torch.no_grad()
def pack_lstms(
    kernel: Kernel,
    directions: Sequence[Iterable[ProjectedLSTM]],
    *,
    has_residuals: bool,
    precision: Precision = Precision.F32,
) -> PackedReader:
    """Pack a copy of the LSTMs of both directions; later changes do not affect it."""
    return PackedReader(
        kernel,
        [
            [PackedLayer(kernel, weights_of(lstm), precision=precision) for lstm in lstms]
            for lstms in directions
        ],
        precision=precision,
        has_residuals=has_residuals,
    )


def read_packed(
    reader: PackedReader, tokens: Tensor, packing: Packing, start: BiLMState
) -> BiLMOutput:
    """Run over flat (N, D) tokens; the given and returned states are in packed order."""
    plan = ReadingPlan(
        step_sizes=packing.step_sizes, positions=[packing.forward_lm, packing.backward_lm]
    )
    layers, hidden, cell = reader.read(tokens, plan, start.hidden, start.cell)
    return BiLMOutput(layers=layers, state=BiLMState(hidden=hidden, cell=cell))


def weights_of(lstm: ProjectedLSTM) -> LayerWeights:
    """Return the weights of a layer for the kernels."""
    return LayerWeights(
        input_weight=lstm.input_weight,
        state_weight=lstm.state_weight,
        bias=lstm.full_bias(),
        projection_weight=lstm.projection_weight,
        cell_clip=lstm.cell_clip,
        output_clip=lstm.output_clip,
    )


def version_of(weights: Iterable[Tensor]) -> list[Hashable]:
    """Return a value that changes with the weights: torch's version counter and a sample.

    The counter misses writes through `.data` or a numpy array. The sample catches those, unless
    only a few single numbers were written.
    """
    return [
        (
            weight.data_ptr(),
            -1 if weight.is_inference() else weight._version,
            weight.detach().flatten()[:: weight.numel() // 64 + 1].numpy().tobytes(),
        )
        for weight in weights
    ]

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
    """Lay out the LSTMs of both directions; the copy does not follow later changes."""
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
    """Read flat (N, D) tokens; the state is in packed order before and after."""
    plan = ReadingPlan(
        step_sizes=packing.step_sizes, places=[packing.forward_lm, packing.backward_lm]
    )
    layers, hidden, cell = reader.read(tokens, plan, start.hidden, start.cell)
    return BiLMOutput(layers=layers, state=BiLMState(hidden=hidden, cell=cell))


def weights_of(lstm: ProjectedLSTM) -> LayerWeights:
    """Return the weights of a layer as kernels want them."""
    return LayerWeights(
        input_weight=lstm.input_weight,
        state_weight=lstm.state_weight,
        bias=lstm.full_bias(),
        projection_weight=lstm.projection_weight,
        cell_clip=lstm.cell_clip,
        output_clip=lstm.output_clip,
    )


def version_of(weights: Iterable[Tensor]) -> list[Hashable]:
    """Return what changes when the weights do: torch's count of changes, and a sample of them.

    The count misses what is written by way of `.data` or of a numpy array; the sample finds it,
    but for a change of single numbers made so.
    """
    return [
        (
            weight.data_ptr(),
            -1 if weight.is_inference() else weight._version,
            weight.detach().flatten()[:: weight.numel() // 64 + 1].numpy().tobytes(),
        )
        for weight in weights
    ]

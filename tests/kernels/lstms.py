"""Random LSTMs of any shape, and what `tests/reference.py` makes of them in double precision.

Shapes: L LSTM layers, B sentences, N their tokens in all, D one direction, C cells.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from elmore.config import Precision
from elmore.kernels.library import find_kernel
from elmore.model.bilm import BiLM, BiLMOutput
from elmore.model.lstm import ProjectedLSTM
from elmore.model.state import BiLMState
from elmore.model.token_encoder import TokenEncoder
from tests import reference

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class Case:
    """LSTMs and what they read; `seed` chooses the numbers."""

    lengths: tuple[int, ...]
    output_dim: int = 5
    cell_dim: int = 12
    num_layers: int = 2
    has_projection: bool = True
    has_residuals: bool = True
    cell_clip: float | None = 0.4
    output_clip: float | None = 0.3
    has_state: bool = True
    gain: float = 1.0
    seed: int = 0

    def build(self) -> BiLM:
        """Build the biLM; weights keep the size of what passes through, biases matter too."""
        generator = torch.Generator().manual_seed(self.seed)
        bilm = BiLM(
            token_encoder=TokenEncoder(characters=None, highways=[], words=None, projection=None),
            forward_lm=[self._build_lstm() for _ in range(self.num_layers)],
            backward_lm=[self._build_lstm() for _ in range(self.num_layers)],
            has_residuals=self.has_residuals,
            output_dim=self.output_dim,
            cell_dim=self.cell_dim,
        )
        with torch.no_grad():
            for weight in bilm.parameters():
                size = self.gain / weight.shape[-1] ** 0.5 if weight.dim() == 2 else 0.5
                weight.copy_(torch.randn(weight.shape, generator=generator) * size)
        return bilm

    def _build_lstm(self) -> ProjectedLSTM:
        return ProjectedLSTM(
            input_dim=self.output_dim,
            cell_dim=self.cell_dim,
            output_dim=self.output_dim,
            has_projection=self.has_projection,
            cell_clip=self.cell_clip,
            output_clip=self.output_clip,
            forget_bias=1.0,
        )

    def tokens(self) -> Tensor:
        """Draw the (N, D) vectors to read."""
        generator = torch.Generator().manual_seed(self.seed + 1)
        return torch.randn(sum(self.lengths), self.output_dim, generator=generator)

    def state(self) -> BiLMState | None:
        """Draw the state to begin with; without one, that is zeros."""
        if not self.has_state:
            return None
        generator = torch.Generator().manual_seed(self.seed + 2)
        shape = (2, self.num_layers, len(self.lengths))
        return BiLMState(
            hidden=torch.randn(*shape, self.output_dim, generator=generator) * 0.3,
            cell=torch.randn(*shape, self.cell_dim, generator=generator) * 0.3,
        )

    def only(self, sentence: int) -> "Case":
        """Name the same LSTMs for one of the sentences; tokens and state are `part_of`'s."""
        return replace(self, lengths=(self.lengths[sentence],))


DIMS = [1, 3, 5, 8, 16, 17, 32, 33]


@st.composite
def cases(draw: st.DrawFn, *, max_sentences: int = 7, max_length: int = 9) -> Case:
    """Draw any architecture, and sentences."""
    has_projection = draw(st.booleans())
    output_dim = draw(st.sampled_from(DIMS))
    clips = st.sampled_from([None, 0.05, 0.2, 3.0])
    lengths = st.lists(st.integers(1, max_length), min_size=1, max_size=max_sentences)
    return Case(
        lengths=tuple(draw(lengths)),
        output_dim=output_dim,
        cell_dim=draw(st.sampled_from(DIMS)) if has_projection else output_dim,
        num_layers=draw(st.integers(1, 3)),
        has_projection=has_projection,
        has_residuals=draw(st.booleans()),
        cell_clip=draw(clips),
        output_clip=draw(clips),
        has_state=draw(st.booleans()),
        seed=draw(st.integers(0, 1000)),
    )


def part_of(tokens: Tensor, lengths: tuple[int, ...], sentence: int) -> Tensor:
    """Return the tokens of one sentence."""
    return tokens.split(list(lengths))[sentence]


def read(
    bilm: object, case: Case, tokens: Tensor | None = None, state: BiLMState | None = None
) -> BiLMOutput:
    """Let a biLM, plain or packed, read the sentences of a case; nothing is kept for a gradient."""
    with torch.no_grad():
        return bilm.contextualize(  # type: ignore[attr-defined]
            case.tokens() if tokens is None else tokens,
            torch.tensor(case.lengths),
            case.state() if state is None else state,
        )


# The oracle, with weights and inputs rounded as a kernel rounds them.


class Rounded:
    """A matrix (I, O) that rounds what it is multiplied with."""

    __array_ufunc__ = None  # numpy leaves `x @ self` to __rmatmul__

    def __init__(self, weight: Array, round_inputs: Callable[[Array], Array]) -> None:
        self.weight = weight
        self.round_inputs = round_inputs

    def __rmatmul__(self, x: Array) -> Array:
        return self.round_inputs(x) @ self.weight


def keep(x: Array) -> Array:
    """Round nothing."""
    return x


def round_to_bf16(x: Array) -> Array:
    """Keep 8 bits of the mantissa."""
    return torch.from_numpy(np.array(x)).to(torch.bfloat16).double().numpy()


def round_weight(weight: Tensor, precision: Precision) -> Array:
    """Return what a kernel keeps of an (O, I) matrix."""
    match precision:
        case Precision.F32:
            return weight.detach().double().numpy()
        case Precision.BF16:
            return round_to_bf16(weight.detach().numpy())
        case Precision.INT8:
            scale = weight.detach().abs().amax(dim=1, keepdim=True) / 127
            return ((weight.detach() / scale).round().double() * scale.double()).numpy()


def input_limit(num_inputs: int) -> int:
    """Return the largest whole number that stands for an input: 8 bits with VNNI, else 12."""
    kernel = find_kernel()
    if kernel is not None and kernel.name in {"avx512_vnni", "avx512_bf16"}:
        return 127
    return min(2047, (2**31 - 1) // 127 // num_inputs)


def round_to_whole(x: Array) -> Array:
    """Round (I,) to whole numbers times one scale, as int8 kernels do with inputs."""
    scale = np.abs(x).max() / input_limit(len(x))
    return x if scale == 0 else np.rint(x / scale) * scale


def rounding_of_inputs(precision: Precision) -> Callable[[Array], Array]:
    """Return what the kernel in use does to inputs before it multiplies them."""
    kernel = find_kernel()
    if kernel is not None and precision is Precision.INT8:
        return round_to_whole
    if kernel is not None and precision is Precision.BF16 and kernel.name == "avx512_bf16":
        return round_to_bf16
    return keep


def to_cell(lstm: ProjectedLSTM, precision: Precision) -> reference.Cell:
    """Return a layer as the oracle has it."""
    rounding = rounding_of_inputs(precision)

    def convert(weight: Tensor) -> Rounded:
        return Rounded(round_weight(weight, precision).T, rounding)

    projection = lstm.projection_weight
    return reference.Cell(
        input_weight=convert(lstm.input_weight),  # type: ignore[arg-type]
        state_weight=convert(lstm.state_weight),  # type: ignore[arg-type]
        bias=lstm.full_bias().detach().double().numpy(),
        projection=None if projection is None else convert(projection),  # type: ignore[arg-type]
        cell_clip=lstm.cell_clip,
        projection_clip=lstm.output_clip,
    )


def expected(
    case: Case, bilm: BiLM, precision: Precision = Precision.F32
) -> tuple[Array, Array, Array]:
    """Return (L + 1, N, 2D) layers, (2, L, B, D) hidden and (2, L, B, C) cell, by the formulas."""
    directions = [[to_cell(lstm, precision) for lstm in lstms] for lstms in bilm.directions]
    state = case.state() or bilm.initial_state(len(case.lengths))
    first_hidden, first_cell = (s.double().numpy() for s in (state.hidden, state.cell))
    hidden, cell = np.empty_like(first_hidden), np.empty_like(first_cell)
    sentences = []
    for row, tokens in enumerate(case.tokens().double().split(list(case.lengths))):
        halves = []
        for number, cells in enumerate(directions):
            starts = [
                (first_hidden[number, depth, row], first_cell[number, depth, row])
                for depth in range(case.num_layers)
            ]
            inputs = tokens.numpy() if number == 0 else tokens.numpy()[::-1]
            layers, ends = reference.run_direction(inputs, cells, starts, case.has_residuals)
            halves.append(np.stack([inputs, *layers])[:, :: 1 if number == 0 else -1])
            for depth, (last_hidden, last_cell) in enumerate(ends):
                hidden[number, depth, row], cell[number, depth, row] = last_hidden, last_cell
        sentences.append(np.concatenate(halves, axis=2))
    return np.concatenate(sentences, axis=1), hidden, cell


def largest_error(output: BiLMOutput, wanted: tuple[Array, Array, Array]) -> float:
    """Return the largest difference of any layer or state."""
    found = (output.layers, output.state.hidden, output.state.cell)
    return max(
        float(np.abs(ours.double().numpy() - theirs).max())
        for ours, theirs in zip(found, wanted, strict=True)
    )

"""The layers of a biLM that is trained with the task; gradients flow through it.

Shapes: L layers, N tokens and markers, B sentences, T tokens in the longest, D a layer.
"""

from collections.abc import Iterator, Sequence

from torch import Tensor, nn

from elmore.model.packing import drop_markers
from elmore.weights.elmo_model import ElmoModel


class TrainedLayers(nn.Module):
    """Computes the layers in each call, in single precision."""

    def __init__(self, elmo: ElmoModel) -> None:
        super().__init__()
        self.elmo = elmo

    @property
    def num_layers(self) -> int:
        """The number of LSTM layers plus one for the token layer."""
        return self.elmo.bilm.num_layers

    @property
    def layer_dim(self) -> int:
        """Width of a layer: both directions."""
        return self.elmo.bilm.output_dim

    def find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return (L, B, T, D), zero at padding."""
        batch = self.elmo.batch(sentences)
        return drop_markers(self.elmo.bilm(batch).layers, batch.lengths)[0]

    def groups(self) -> Iterator[list[nn.Parameter]]:
        """Yield the groups of weights with the same learning rate, from the top layer down."""
        directions = self.elmo.bilm.directions
        for layers in zip(*(reversed(direction) for direction in directions), strict=True):
            yield [weight for layer in layers for weight in layer.parameters()]
        yield list(self.elmo.bilm.token_encoder.parameters())

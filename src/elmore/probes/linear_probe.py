"""What a linear classifier reads from frozen vectors (Peters et al., 2018, table 6).

Shapes: L layers to mix (or 1), N tokens, B of them at once, D one layer's vector, C tags.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmore.errors import DataError
from elmore.model.scalar_mix import ScalarMix

Array = NDArray[np.float32]
Labels = NDArray[np.int64]

# Bounds memory where a whole part of the data is gone through.
ROWS_AT_ONCE = 8192


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeSettings:
    """How a probe is trained; one setting serves all views, so that they can be compared."""

    max_epochs: int = 10
    patience: int = 3  # epochs in a row that are no better on dev
    tokens_per_batch: int = 512
    learning_rate: float = 0.01  # at first; it falls to 0
    seed: int = 0  # the order of the tokens; the weights begin at 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """Tokens to learn from or to be tested on."""

    layers: Sequence[Array]  # L of (N, D)
    labels: Labels  # (N,), -1 for a tag that training does not have


class LinearProbe(nn.Module):
    """Standardise each layer, mix them if they are several, and classify."""

    means: Tensor
    inverse_deviations: Tensor

    def __init__(self, *, means: Tensor, deviations: Tensor, num_tags: int) -> None:
        super().__init__()
        num_layers, dim = means.shape
        self.register_buffer("means", means[:, None])
        self.register_buffer("inverse_deviations", 1 / deviations[:, None])
        self.mix = ScalarMix(num_layers=num_layers, trainable=num_layers > 1)
        self.linear = nn.Linear(dim, num_tags)
        # The loss of one layer is convex: from 0 there is one way, and no chance in it.
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, layers: Tensor) -> Tensor:
        """Map (L, B, D) to (B, C)."""
        return self.linear(self.mix((layers - self.means) * self.inverse_deviations))

    @property
    def shares(self) -> list[float]:
        """What part each layer has in the mix; they sum to 1."""
        return self.mix.weights.detach().softmax(dim=0).tolist()

    @torch.no_grad()
    def predict(self, layers: Sequence[Array]) -> Labels:
        """Return the label of each token, (N,)."""
        found = np.empty(len(layers[0]), dtype=np.int64)
        for start in range(0, len(found), ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, len(found)))
            found[rows] = self(_gather(layers, rows)).argmax(dim=1).numpy()
        return found


def fit_probe(
    train: Examples,
    dev: Examples,
    *,
    num_tags: int,
    settings: ProbeSettings,
    on_epoch: Callable[[int], None] = lambda _epoch: None,
) -> LinearProbe:
    """Train a probe and return it as it was after its best epoch on `dev`."""
    moments = [measure_moments(layer) for layer in train.layers]
    probe = LinearProbe(
        means=torch.stack([mean for mean, _ in moments]),
        deviations=torch.stack([deviation for _, deviation in moments]),
        num_tags=num_tags,
    )
    learned = [weight for weight in probe.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=settings.learning_rate)
    generator = np.random.default_rng(settings.seed)
    best_accuracy, best_epoch = -1.0, 0
    best_state: dict[str, Tensor] = {}
    for epoch in range(1, settings.max_epochs + 1):
        # Falls to 0 in equal steps: a rate that stays leaves the last digits of accuracy to chance.
        share_left = 1 - (epoch - 1) / settings.max_epochs
        optimizer.param_groups[0]["lr"] = settings.learning_rate * share_left
        order = generator.permutation(len(train.labels))
        for start in range(0, len(order), settings.tokens_per_batch):
            _train_step(probe, train, order[start : start + settings.tokens_per_batch], optimizer)
        on_epoch(epoch)
        accuracy = float(np.mean(probe.predict(dev.layers) == dev.labels))
        if accuracy > best_accuracy:
            best_accuracy, best_epoch = accuracy, epoch
            best_state = {name: value.clone() for name, value in probe.state_dict().items()}
        elif epoch - best_epoch >= settings.patience:
            break
    probe.load_state_dict(best_state)
    return probe


def measure_moments(layer: Array) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of each dimension, (D,); 1 where there is no deviation.

    Layers differ in scale by a lot, and a fixed learning rate and number of epochs would favour
    some scales: a probe is to tell what a layer knows, not how large its numbers are.
    """
    # In double precision, sums of a constant dimension are exact, and its deviation is 0.
    mean = sum(chunk.sum(axis=0, dtype=np.float64) for chunk in _chunks(layer)) / len(layer)
    squares = sum(np.square(chunk - mean).sum(axis=0) for chunk in _chunks(layer))
    deviation = np.sqrt(squares / len(layer))
    if not np.isfinite(deviation).all():
        raise DataError("the vectors have numbers that are not finite; the model may be damaged")
    deviation[deviation < np.finfo(np.float32).tiny] = 1
    return torch.from_numpy(mean).float(), torch.from_numpy(deviation).float()


def _chunks(layer: Array) -> Iterator[Array]:
    return (layer[start : start + ROWS_AT_ONCE] for start in range(0, len(layer), ROWS_AT_ONCE))


def _train_step(
    probe: LinearProbe, train: Examples, rows: Labels, optimizer: torch.optim.Optimizer
) -> None:
    optimizer.zero_grad(set_to_none=True)
    scores = probe(_gather(train.layers, rows))
    labels = torch.from_numpy(train.labels[rows])
    nn.functional.cross_entropy(scores, labels).backward()
    optimizer.step()


def _gather(layers: Sequence[Array], rows: Labels) -> Tensor:
    """Copy some rows of each layer, (L, B, D), out of arrays that may be files."""
    return torch.from_numpy(np.stack([layer[rows] for layer in layers]))

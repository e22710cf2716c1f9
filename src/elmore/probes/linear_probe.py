"""A linear classifier on frozen vectors (Peters et al., 2018, table 6).

Shapes: L layers to mix (or 1), N tokens, B tokens in a batch, D numbers of a vector, C tags.
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

# Bounds memory in loops over a whole part of the data.
ROWS_AT_ONCE = 8192


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeSettings:
    """How probes are trained; all views use the same settings, so that they can be compared."""

    max_epochs: int = 10
    patience: int = 3  # stop after this many epochs without improvement on dev
    tokens_per_batch: int = 512
    learning_rate: float = 0.01  # in the first epoch; decays linearly to 0
    seed: int = 0  # for the order of tokens; weights start from 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """Tokens for training or evaluation."""

    layers: Sequence[Array]  # L arrays of (N, D)
    labels: Labels  # (N,), -1 for a tag that is not in the training data


class LinearProbe(nn.Module):
    """Standardizes each layer, mixes them if there are several, and classifies."""

    means: Tensor
    inverse_deviations: Tensor

    def __init__(self, *, means: Tensor, deviations: Tensor, num_tags: int) -> None:
        super().__init__()
        num_layers, dim = means.shape
        self.register_buffer("means", means[:, None])
        self.register_buffer("inverse_deviations", 1 / deviations[:, None])
        self.mix = ScalarMix(num_layers=num_layers, trainable=num_layers > 1)
        self.linear = nn.Linear(dim, num_tags)
        # With one layer the loss is convex, so starting from 0 leaves nothing to chance.
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, layers: Tensor) -> Tensor:
        """Map (L, B, D) to (B, C)."""
        return self.linear(self.mix((layers - self.means) * self.inverse_deviations))

    @property
    def shares(self) -> list[float]:
        """The weight of each layer in the mix; the weights sum to 1."""
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
    """Train a probe and return its state after the best epoch on `dev`."""
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
        # Linear decay to 0: a constant rate leaves the last digits of the accuracy to chance.
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
    """Return the mean and standard deviation (D,) of each dimension; constant ones get 1.

    Layers differ a lot in scale, and a fixed learning rate and number of epochs would favor some
    scales. A probe should measure what a layer knows, not how large its numbers are.
    """
    # In double precision, the sum of a constant dimension is exact, so its deviation is 0.
    mean = sum(chunk.sum(axis=0, dtype=np.float64) for chunk in _chunks(layer)) / len(layer)
    squares = sum(np.square(chunk - mean).sum(axis=0) for chunk in _chunks(layer))
    deviation = np.sqrt(squares / len(layer))
    if not np.isfinite(deviation).all():
        raise DataError(
            "the vectors have numbers that are not finite; the model may be damaged, so use another"
        )
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
    """Copy some rows (L, B, D) of each layer; the arrays may be memory-mapped files."""
    return torch.from_numpy(np.stack([layer[rows] for layer in layers]))

"""The weights of a model that is being loaded: read one by one, and hashed on the way."""

from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Tensor

from elmore.errors import ModelError

Readers = Mapping[str, Callable[[], Tensor]]


class Digest(Protocol):
    """A hash of hashlib."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Add data."""

    def hexdigest(self) -> str:
        """Return the hash of all data."""


def add_weight(digest: Digest, name: str, weight: Tensor) -> None:
    """Add a weight to a fingerprint, which has all weights in the order of their names."""
    digest.update(name.encode())
    digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy().data)


class UnreadWeights:
    """Weights that are still in a file; each is read when it is taken, and can be taken once.

    The file is read in the order of the fingerprint. In any other order, weights that were not
    taken yet wait in memory.
    """

    def __init__(
        self, readers: Readers, *, shapes: Mapping[str, tuple[int, ...]], digest: Digest
    ) -> None:
        self._left = [(name, readers[name]) for name in sorted(shapes, reverse=True)]
        self._shapes = shapes
        self._digest = digest
        self._waiting: dict[str, Tensor] = {}

    def take(self, name: str) -> Tensor:
        """Read a weight."""
        while name not in self._waiting:
            self._read_next()
        return self._waiting.pop(name)

    def take_all(self) -> dict[str, Tensor]:
        """Read all weights that were not taken; there is no fingerprint after this."""
        taken = {**self._waiting, **{name: self._read(name, read) for name, read in self._left}}
        self._waiting, self._left = {}, []
        return taken

    def fingerprint(self) -> str:
        """Return the hash of the model, after reading what is left."""
        while self._left:
            self._read_next()
        return self._digest.hexdigest()

    def _read_next(self) -> None:
        name, read = self._left.pop()
        self._waiting[name] = self._read(name, read)
        add_weight(self._digest, name, self._waiting[name])

    def _read(self, name: str, read: Callable[[], Tensor]) -> Tensor:
        weight = read()
        check_shape(name, weight, self._shapes[name])
        return weight


def check_shape(name: str, weight: Tensor | None, shape: tuple[int, ...]) -> None:
    """Refuse a weight of another shape, or none at all."""
    found = None if weight is None else tuple(weight.shape)
    if found != shape:
        raise ModelError(f"weight {name!r} has shape {found}, but its config expects {shape}")

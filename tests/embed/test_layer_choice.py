from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from elmore.embed.layer_choice import LayerChoice, Output
from elmore.model.scalar_mix import ScalarMix
from elmore.model.state import BiLMState
from elmore.read.engine import ReadBatch

SENTENCES = [["a", "b", "c"], ["d"], ["e"] * 40]


def make_batch(num_layers: int, *, dim: int = 8) -> ReadBatch:
    num_tokens = sum(len(sentence) + 2 for sentence in SENTENCES)
    state = torch.zeros(2, num_layers - 1, len(SENTENCES), dim // 2)
    torch.manual_seed(0)
    return ReadBatch(
        numbers=[0, 1, 2],
        sentences=SENTENCES,
        layers=torch.randn(num_layers, num_tokens, dim) * 100,
        state=BiLMState(hidden=state, cell=state),
    )


CHOICES = [
    *("average", "sum", "top", "all", 0, [2, 0]),
    ScalarMix(num_layers=3, initial_logits=[0.3, -0.2, 1.0]),
    ScalarMix.from_weights([0.5, 0.0, 3.0]),
]


@pytest.mark.parametrize("layers", CHOICES, ids=str)
@pytest.mark.parametrize("output", list(Output))
def test_vectors_have_the_bits_of_torch(layers: Any, output: Output) -> None:
    batch = make_batch(3)
    choice = LayerChoice(layers, num_layers=3)
    expected = choice(batch.layers).numpy()
    with patch.object(LayerChoice, "__call__", side_effect=AssertionError("torch was used")):
        found = choice.cut(batch, output=output)
    start = 0
    for vectors, sentence in zip(found, SENTENCES, strict=True):
        end = start + len(sentence) + 2
        array = vectors.numpy() if output is Output.TORCH else vectors
        assert isinstance(vectors, torch.Tensor) == (output is Output.TORCH)
        np.testing.assert_array_equal(array, expected[..., start + 1 : end - 1, :])
        assert array.dtype == np.float32
        start = end


@pytest.mark.parametrize("layers", CHOICES, ids=str)
def test_vectors_do_not_keep_the_batch_alive(layers: Any) -> None:
    batch = make_batch(3)
    for vectors in LayerChoice(layers, num_layers=3).cut(batch):
        assert not np.shares_memory(vectors, batch.layers.numpy())


def test_average_of_one_layer_or_many_layers_is_the_mean() -> None:
    for num_layers in (1, 2, 7):
        batch = make_batch(num_layers)
        found = LayerChoice("average", num_layers=num_layers).cut(batch)[2]
        expected = batch.layers.double().mean(dim=0)[9:49]
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)


@pytest.mark.parametrize("layers", ["average", "sum"])
def test_many_layers_add_up_alike_in_any_batch(layers: str) -> None:
    """torch's own sum of 5 or more numbers chooses its order by the shape."""
    choice, batch = LayerChoice(layers, num_layers=7), make_batch(7, dim=1024)
    alone = choice(batch.layers[:, :1, :8])
    assert choice(batch.layers)[:1, :8].equal(alone)


def test_mix_in_double_precision_is_left_to_torch() -> None:
    mix = ScalarMix.from_weights([0.1, 0.2, 0.7]).double()
    batch = make_batch(3)
    choice = LayerChoice(mix, num_layers=3)
    expected = choice(batch.layers).float().numpy()
    np.testing.assert_array_equal(choice.cut(batch)[0], expected[1:4])

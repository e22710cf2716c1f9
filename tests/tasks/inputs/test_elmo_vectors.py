import pytest
import torch
from torch.testing import assert_close

from elmore.tasks.inputs.elmo_vectors import ElmoVectors, LayerUse

LAYERS = torch.randn(3, 2, 4, 6, generator=torch.Generator().manual_seed(1))
MASK = torch.tensor([[True] * 4, [True, False, False, False]])


def make(**changes):
    return ElmoVectors(**{"num_layers": 3, "layer_dim": 6, "dropout": 0.0, **changes})


def test_layers_are_weighed_by_shares_and_scale():
    vectors = make()
    with torch.no_grad():
        vectors.mix.weights.copy_(torch.tensor([0.0, 1.0, -1.0]))
        vectors.mix.scale.fill_(2.0)
    shares = torch.tensor([0.0, 1.0, -1.0]).softmax(0)
    wanted = 2.0 * sum(share * layer for share, layer in zip(shares, LAYERS, strict=True))
    assert_close(vectors(LAYERS, MASK), wanted * MASK[..., None])
    assert vectors.shares == pytest.approx(shares.tolist())


@pytest.mark.parametrize(
    ("use", "wanted"), [(LayerUse.TOP, LAYERS[-1]), (LayerUse.AVERAGE, LAYERS.mean(0))]
)
def test_top_and_average_learn_a_scale_only(use, wanted):
    vectors = make(use=use)
    found = vectors(LAYERS, MASK)
    assert_close(found, wanted * MASK[..., None])
    (found.sum() + vectors.penalty(1.0)).backward()
    learned = [name for name, weight in vectors.named_parameters() if weight.grad is not None]
    assert learned == ["mix.scale"]
    assert vectors.penalty(1.0) == 0.0


def test_layer_norm_counts_tokens_only():
    vectors = make(normalizes=True, use=LayerUse.TOP)
    found = vectors(LAYERS, MASK)
    real = LAYERS[-1][MASK]
    wanted = (real - real.mean()) / real.std(correction=0)
    assert_close(found[MASK], wanted)
    assert not found[~MASK].any()
    noisy = LAYERS.masked_fill(~MASK[..., None], 1e3)
    assert torch.equal(vectors(noisy, MASK), found)


def test_dropout_is_for_training_only():
    vectors = make(dropout=0.5)
    torch.manual_seed(0)
    assert (vectors(LAYERS, MASK)[MASK] == 0).any()
    vectors.eval()
    assert_close(vectors(LAYERS, MASK), LAYERS.mean(0) * MASK[..., None])

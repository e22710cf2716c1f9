from dataclasses import replace

import numpy as np
import pytest
import torch

from elmore.errors import DataError
from elmore.probes.linear_probe import (
    Examples,
    LinearProbe,
    ProbeSettings,
    fit_probe,
    measure_moments,
)

SETTINGS = ProbeSettings(tokens_per_batch=32, learning_rate=0.1)


def make_layers(num_tokens, *, seed=0, num_layers=3, dim=6):
    """Random numbers, each layer on its own scale and away from 0."""
    generator = np.random.default_rng(seed)
    layers = generator.normal(size=(num_layers, num_tokens, dim))
    return (layers * [[[0.1]], [[1.0]], [[20.0]]] + 3).astype(np.float32)


def label(layer):
    """Say which of the first three numbers is largest: a linear classifier can tell."""
    return layer[:, :3].argmax(axis=1)


def fit(train_layers, dev_layers, chosen, *, labeled_by=1, settings=SETTINGS, **options):
    """Train on some layers of data whose labels depend on one."""
    train, dev = (
        Examples(layers=[layers[k] for k in chosen], labels=label(layers[labeled_by]))
        for layers in (train_layers, dev_layers)
    )
    probe = fit_probe(train, dev, num_tags=3, settings=settings, **options)
    return probe, float(np.mean(probe.predict(dev.layers) == dev.labels))


TRAIN, DEV = make_layers(600), make_layers(300, seed=1)


def test_a_separable_problem_is_solved_whole():
    generator = np.random.default_rng(0)
    labels = generator.integers(4, size=400)
    # Four corners of a square, with noise too small to cross a side.
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    vectors = (corners[labels] + generator.uniform(-0.3, 0.3, size=(400, 2))).astype(np.float32)
    examples = Examples(layers=[vectors], labels=labels)
    probe = fit_probe(examples, examples, num_tags=4, settings=SETTINGS)
    assert probe.predict([vectors]).tolist() == labels.tolist()


@pytest.mark.slow
def test_only_the_layer_that_knows_and_the_mix_find_the_labels():
    for layer, (least, most) in enumerate([(0.0, 0.5), (0.95, 1.0), (0.0, 0.5)]):
        _, accuracy = fit(TRAIN, DEV, [layer])
        assert least <= accuracy <= most, layer
    mixed, accuracy = fit(TRAIN, DEV, [0, 1, 2])
    assert accuracy > 0.9
    assert mixed.shares[1] > 0.6
    assert sum(mixed.shares) == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1024.0, 2.0**-20])
def test_the_scale_of_a_layer_changes_nothing(scale):
    # A power of 2, so that scaling rounds nothing.
    scales = np.array([1, scale, 1], dtype=np.float32)[:, None, None]
    for chosen in ([1], [0, 1, 2]):
        probe, accuracy = fit(TRAIN, DEV, chosen)
        train, dev = (
            Examples(layers=list((layers * scales)[chosen]), labels=label(layers[1]))
            for layers in (TRAIN, DEV)
        )
        scaled = fit_probe(train, dev, num_tags=3, settings=SETTINGS)
        assert np.mean(scaled.predict(dev.layers) == dev.labels) == pytest.approx(
            accuracy, abs=0.004
        )
        assert scaled.shares == pytest.approx(probe.shares, abs=1e-3)


@pytest.mark.slow
def test_one_seed_gives_one_result_and_another_seed_another():
    again = [fit(TRAIN, DEV, [0, 1, 2])[0].state_dict() for _ in range(2)]
    other = fit(TRAIN, DEV, [0, 1, 2], settings=replace(SETTINGS, seed=1))[0]
    for name, value in again[0].items():
        assert torch.equal(value, again[1][name]), name
    assert not torch.equal(again[0]["linear.weight"], other.linear.weight)


def test_scores_are_those_of_the_formulas():
    layers = TRAIN[:, :5].astype(np.float64)
    moments = [measure_moments(layer) for layer in TRAIN]
    probe = LinearProbe(
        means=torch.stack([mean for mean, _ in moments]),
        deviations=torch.stack([deviation for _, deviation in moments]),
        num_tags=4,
    )
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in probe.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator))
    means, deviations = TRAIN.mean(axis=1, dtype=np.float64), TRAIN.std(axis=1, dtype=np.float64)
    weights, scale = probe.mix.weights.detach().numpy(), probe.mix.scale.item()
    shares = np.exp(weights) / np.exp(weights).sum()
    mixed = sum(
        shares[k] * (layers[k] - means[k]) / deviations[k] for k in range(3)
    )  # (tokens, dim)
    linear = probe.linear.weight.detach().numpy(), probe.linear.bias.detach().numpy()
    wanted = scale * mixed @ linear[0].T + linear[1]
    found = probe(torch.from_numpy(TRAIN[:, :5])).detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    assert probe.predict(list(TRAIN[:, :5])).tolist() == wanted.argmax(axis=1).tolist()
    assert probe.shares == pytest.approx(shares.tolist(), rel=1e-5)


def test_moments_are_exact_beyond_one_chunk_and_constants_deviate_by_1(monkeypatch):
    monkeypatch.setattr("elmore.probes.linear_probe.ROWS_AT_ONCE", 7)
    layer = TRAIN[2].copy()
    layer[:, 0] = 1e4 / 3  # its mean is not a float32, and rounding must not look like deviation
    mean, deviation = measure_moments(layer)
    np.testing.assert_allclose(mean, layer.mean(axis=0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_allclose(deviation[1:], layer.std(axis=0, dtype=np.float64)[1:], rtol=1e-6)
    assert deviation[0] == 1


def test_the_best_epoch_on_dev_is_kept():
    train = Examples(layers=[TRAIN[1]], labels=label(TRAIN[1]))
    # Labels by chance: what is learned makes no steady progress towards them.
    noise = np.random.default_rng(0).integers(3, size=len(DEV[1]))
    dev = Examples(layers=[DEV[1]], labels=noise)
    shares, num_epochs = [], []
    for patience in range(1, 7):
        epochs = []
        settings = ProbeSettings(max_epochs=6, patience=patience, tokens_per_batch=32)
        probe = fit_probe(train, dev, num_tags=3, settings=settings, on_epoch=epochs.append)
        shares.append(float(np.mean(probe.predict(dev.layers) == dev.labels)))
        num_epochs.append(len(epochs))
    # All go the same way, some further than others, and to go further never ends worse.
    assert shares == sorted(shares)
    assert num_epochs == sorted(num_epochs)
    assert (num_epochs[0] < 6, num_epochs[-1]) == (True, 6)


def test_tags_that_training_does_not_have_are_never_right():
    dev = Examples(layers=[DEV[1]], labels=np.full(len(DEV[1]), -1))
    train = Examples(layers=[TRAIN[1]], labels=label(TRAIN[1]))
    epochs = []
    probe = fit_probe(train, dev, num_tags=3, settings=SETTINGS, on_epoch=epochs.append)
    assert not np.any(probe.predict(dev.layers) == dev.labels)
    assert epochs == [1, 2, 3, 4]  # the first is as good as any, and three more were tried


def test_numbers_that_are_not_finite_are_refused():
    layer = TRAIN[1].copy()
    layer[5, 2] = np.nan
    with pytest.raises(DataError, match="not finite"):
        measure_moments(layer)

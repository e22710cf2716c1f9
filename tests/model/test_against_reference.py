"""Any architecture gives the numbers and gradients of a slow version written from formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.config import CharacterConfig, LSTMConfig, ModelConfig
from elmore.weights.bilm_tf_arrays import to_arrays
from elmore.weights.bilm_tf_options import make_options
from elmore.weights.elmo_model import ElmoModel
from tests import reference, tiny

pytestmark = pytest.mark.slow


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    """Draw any architecture that bilm-tf can express."""
    has_projection = draw(st.booleans())
    output_dim = draw(st.integers(1, 6))
    max_chars = draw(st.integers(3, 12))
    widths = draw(st.lists(st.integers(1, min(4, max_chars)), min_size=1, max_size=3))
    filters = tuple((width, draw(st.integers(1, 4))) for width in widths)
    clips = st.one_of(st.none(), st.floats(0.05, 1.0))
    return ModelConfig(
        lstm=LSTMConfig(
            num_layers=draw(st.integers(1, 4)),
            cell_dim=output_dim + draw(st.integers(1, 5)) if has_projection else output_dim,
            output_dim=output_dim,
            has_projection=has_projection,
            cell_clip=draw(clips),
            output_clip=draw(clips),
            has_residuals=draw(st.booleans()),
        ),
        characters=CharacterConfig(
            max_chars=max_chars,
            splits_characters=True,
            embedding_dim=draw(st.integers(1, 4)),
            filters=filters,
            activation=draw(st.sampled_from(["relu", "tanh"])),
            num_highway_layers=draw(st.integers(0, 2)),
        ),
        has_token_projection=sum(number for _, number in filters) != output_dim,
    )


sentences = st.lists(st.lists(st.text(max_size=14), max_size=7), min_size=1, max_size=4)


def split(flat: torch.Tensor, tokens: list[list[str]]) -> list[np.ndarray]:
    """Cut (L, N, D) into one array a sentence, markers dropped."""
    parts = flat.split([len(sentence) + 2 for sentence in tokens], dim=1)
    return [part[:, 1:-1].detach().numpy() for part in parts]


@settings(max_examples=60, deadline=None)
@given(configs(), sentences, st.integers(0, 1000))
def test_every_layer_is_that_of_the_formulas(config, tokens, seed):
    model = tiny.model(config, seed=seed).double()
    output = model.bilm(model.batch(tokens))
    arrays = to_arrays(model.bilm.state_dict(), config)
    expected = reference.bilm_tf_layers(
        arrays, make_options(config), [[sentence] for sentence in tokens], carry=False
    )
    for found, (wanted,) in zip(split(output.layers, tokens), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(configs(), st.lists(sentences, min_size=2, max_size=3), st.integers(0, 1000))
def test_state_goes_in_and_out_as_in_the_formulas(config, batches, seed):
    num_rows = min(len(batch) for batch in batches)
    batches = [batch[:num_rows] for batch in batches]
    model = tiny.model(config, seed=seed).double()
    state = None
    found = []
    for batch in batches:
        output = model.bilm(model.batch(batch), state)
        state = output.state
        found.append(split(output.layers, batch))
    expected = reference.bilm_tf_layers(
        to_arrays(model.bilm.state_dict(), config),
        make_options(config),
        [[batch[row] for batch in batches] for row in range(num_rows)],
        carry=True,
    )
    for row in range(num_rows):
        for step in range(len(batches)):
            np.testing.assert_allclose(found[step][row], expected[row][step], atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(configs(), st.integers(0, 1000))
def test_gradients_are_those_of_the_formulas(config, seed):
    tokens = [["ab", "c"], ["ñ"]]
    model = tiny.model(config, seed=seed, scale=0.4).double()
    random = np.random.default_rng(seed)
    weigh = [
        random.normal(size=(config.num_mixed_layers, len(sentence), config.vector_dim))
        for sentence in tokens
    ]
    parts = model.bilm(model.batch(tokens)).layers.split([4, 3], dim=1)
    loss = sum(
        (part[:, 1:-1] * torch.from_numpy(w)).sum() for part, w in zip(parts, weigh, strict=True)
    )
    loss.backward()

    def reference_loss(_: np.ndarray) -> float:
        arrays = to_arrays(model.bilm.state_dict(), config)
        rows = reference.bilm_tf_layers(
            arrays, make_options(config), [[s] for s in tokens], carry=False
        )
        return float(sum((layers * w).sum() for (layers,), w in zip(rows, weigh, strict=True)))

    for name, weight in model.bilm.named_parameters():
        assert weight.grad is not None, name
        index = tuple(int(random.integers(size)) for size in weight.shape)
        # The array shares memory with the weight, so nudging one nudges the other.
        wanted = reference.numerical_gradient(
            reference_loss, weight.detach().numpy(), index=index, step=1e-6
        )
        # A step over a kink (relu, max, clip) makes differences coarse, so allow a little.
        assert weight.grad[index].item() == pytest.approx(wanted, rel=1e-4, abs=1e-6), name


@settings(max_examples=15, deadline=None)
@given(configs(), sentences, st.integers(0, 1000))
def test_single_precision_is_close(config, tokens, seed):
    model: ElmoModel = tiny.model(config, seed=seed, scale=0.3)
    single = model.bilm(model.batch(tokens)).layers
    double = model.double().bilm(model.batch(tokens)).layers
    torch.testing.assert_close(single.double(), double, atol=2e-5, rtol=1e-4)

import copy
import pickle

import numpy as np
import pytest
import torch

from elmore.compat.allennlp.common.checks import ConfigurationError
from elmore.compat.allennlp.modules.elmo import (
    Elmo,
    _ElmoBiLm,
    _ElmoCharacterEncoder,
    batch_to_ids,
)
from elmore.errors import DataError
from tests import reference
from tests.compat.old_models import BATCHES, OldModel, assert_close


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return OldModel(tmp_path_factory.mktemp("compat") / "model")


def make(old, number=1, **settings):
    return Elmo(old.options, old.weights, number, **{"dropout": 0.0, **settings})


def test_ids_are_those_of_allennlp():
    ids = batch_to_ids([["é", "<S>"], []])
    assert ids.dtype == torch.int64
    assert ids.shape == (2, 2, 50)
    assert ids[0, 0].tolist() == [259, 196, 170, 260, *[261] * 46]
    assert ids[0, 1].tolist() == [259, 257, 260, *[261] * 47]
    assert not ids[1].any()


def test_the_bilm_carries_state_through_batches_of_changing_size(old):
    bilm = _ElmoBiLm(old.options, old.weights)
    for batch, wanted in zip(BATCHES, old.expected(BATCHES), strict=True):
        output = bilm(batch_to_ids(batch))
        longest = max(map(len, batch))
        assert output["mask"].dtype == torch.int64
        assert output["mask"].sum(dim=1).tolist() == [len(sentence) + 2 for sentence in batch]
        assert [tuple(layer.shape) for layer in output["activations"]] == [
            (len(batch), longest + 2, 10)
        ] * 3
        layers = torch.stack(output["activations"])
        assert not layers[:, output["mask"] == 0].any()
        for row, (sentence, layers_of_row) in enumerate(zip(batch, wanted, strict=True)):
            assert_close(layers[:, row, 1 : len(sentence) + 1].numpy(), layers_of_row)


def test_policy_reset_carries_nothing(old):
    bilm = _ElmoBiLm(old.options, old.weights, policy="reset")
    for batch, wanted in zip(BATCHES, old.expected(BATCHES, carry=False), strict=True):
        layers = torch.stack(bilm(batch_to_ids(batch))["activations"])
        assert_close(layers[:, 0, 1 : len(batch[0]) + 1].numpy(), wanted[0])


def test_state_is_reset_as_programs_do(old):
    elmo = make(old)
    lstm = elmo._elmo_lstm._elmo_lstm
    assert lstm._states is None
    ids = batch_to_ids([["a", "b"], ["c"]])
    first = elmo(ids)["elmo_representations"][0]
    assert [tuple(state.shape) for state in lstm._states] == [(2, 2, 10), (2, 2, 24)]
    saved = lstm._states
    second = elmo(ids)["elmo_representations"][0]
    assert not torch.allclose(first, second)
    lstm._states = saved
    assert torch.equal(elmo(ids)["elmo_representations"][0], second)
    lstm._states = saved
    lstm.reset_states(torch.tensor([1, 0]))
    found = elmo(ids)["elmo_representations"][0]
    assert torch.equal(found[0], first[0])
    assert torch.equal(found[1], second[1])
    with pytest.raises(ValueError, match="2 rows"):
        lstm.reset_states(torch.tensor([1, 0, 0]))
    for reset in (lstm.reset_states, lambda: setattr(lstm, "_states", None)):
        reset()
        assert torch.equal(elmo(ids)["elmo_representations"][0], first)
    assert lstm.stateful
    lstm.stateful = False
    for _ in range(2):
        assert torch.equal(elmo(ids)["elmo_representations"][0], first)


def test_state_is_reset_through_the_modules_of_a_network(old):
    """As AllenNLP's own tests do before they compare a network with its copy."""
    network = torch.nn.Sequential(make(old))
    ids = batch_to_ids([["a", "b"]])
    first = network(ids)["elmo_representations"][0]
    assert not torch.equal(network(ids)["elmo_representations"][0], first)
    stateful = [module for module in network.modules() if getattr(module, "stateful", False)]
    assert len(stateful) == 1
    stateful[0].reset_states()
    assert torch.equal(network(ids)["elmo_representations"][0], first)
    assert len(set(network.parameters())) == len(list(network.parameters()))


def test_each_representation_has_its_mix(old):
    elmo = make(old, 2)
    with torch.no_grad():
        elmo.scalar_mix_1.scalar_parameters[2].fill_(1.5)
        elmo.scalar_mix_1.gamma.fill_(0.5)
    assert elmo._scalar_mixes == [elmo.scalar_mix_0, elmo.scalar_mix_1]  # programs read these
    output = elmo(batch_to_ids(BATCHES[0]))
    layers = old.expected(BATCHES[:1])[0][0]
    low, high = output["elmo_representations"]
    assert low.shape == (3, 4, 10)
    assert output["mask"].tolist() == [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert_close(low[0].detach().numpy(), layers.mean(axis=0))
    weights = np.array([0.0, 0.0, 1.5])
    wanted = reference.scalar_mix(layers, weights=weights, gamma=0.5, layer_norm=False)
    assert_close(high[0].detach().numpy(), wanted)
    assert not low[output["mask"] == 0].any()


def test_markers_are_kept_and_layer_norm_counts_them(old):
    elmo = make(old, keep_sentence_boundaries=True, do_layer_norm=True)
    output = elmo(batch_to_ids(BATCHES[0]))
    bilm = _ElmoBiLm(old.options, old.weights)(batch_to_ids(BATCHES[0]))
    mask = bilm["mask"].bool()
    flat = torch.stack(bilm["activations"])[:, mask].double().numpy()
    wanted = reference.scalar_mix(flat, weights=np.zeros(3), gamma=1.0, layer_norm=True)
    assert torch.equal(output["mask"], bilm["mask"])
    assert_close(output["elmo_representations"][0][mask].detach().numpy(), wanted)


def test_given_weights_are_not_trained(old):
    elmo = make(old, scalar_mix_parameters=[-9e10, 1, -9e10])
    assert not any(weight.requires_grad for weight in elmo.parameters())
    found = elmo(batch_to_ids(BATCHES[0]))["elmo_representations"][0][0].numpy()
    assert_close(found, old.expected(BATCHES[:1])[0][0][1])


def test_inputs_of_four_dimensions_keep_their_shape(old):
    ids = batch_to_ids([["a", "b"], ["c"], ["d"], ["e", "f"]])
    wanted = make(old)(ids)
    found = make(old)(ids.view(2, 2, 2, 50))
    assert found["mask"].shape == (2, 2, 2)
    assert torch.equal(
        found["elmo_representations"][0].flatten(0, 1), *wanted["elmo_representations"]
    )


def test_a_batch_may_have_no_tokens(old):
    output = make(old)(batch_to_ids([[]]))
    assert output["elmo_representations"][0].shape == (1, 0, 10)
    assert output["mask"].shape == (1, 0)


def test_padding_beyond_the_longest_sentence_is_kept(old):
    ids = torch.nn.functional.pad(batch_to_ids([["a"]]), (0, 0, 0, 3))
    output = make(old)(ids)
    assert output["elmo_representations"][0].shape == (1, 4, 10)
    assert output["mask"].tolist() == [[1, 0, 0, 0]]


def test_cached_words_have_the_vectors_of_their_characters(old):
    vocabulary = ["@@PADDING@@", "a", "bank", "The"]
    sentences = [["The", "bank"], ["a"]]
    ids, words = batch_to_ids(sentences), torch.tensor([[3, 2], [1, 0]])
    wanted = make(old)(ids)
    elmo = make(old, vocab_to_cache=vocabulary)
    found = elmo(torch.zeros_like(ids), words)
    torch.testing.assert_close(found, wanted)
    elmo._elmo_lstm._elmo_lstm.reset_states()
    unknown = elmo(ids, torch.tensor([[3, 2], [9, 0]]))  # falls back to the characters
    torch.testing.assert_close(unknown, wanted)
    deep = make(old, vocab_to_cache=vocabulary)(ids.unsqueeze(1), words.unsqueeze(1))
    assert deep["elmo_representations"][0].shape == (2, 1, 2, 10)
    assert not elmo.state_dict()["_elmo_lstm._word_embedding.weight"][0].any()


def test_word_inputs_without_a_cache_are_ignored(old, caplog):
    ids = batch_to_ids([["a"]])
    assert torch.equal(
        *make(old)(ids)["elmo_representations"],
        *make(old)(ids, torch.tensor([[1]]))["elmo_representations"],
    )
    assert "no vocab_to_cache" in caplog.text


@pytest.mark.parametrize("trains", [True, False])
def test_gradients_reach_the_bilm_only_if_asked_for(old, trains):
    elmo = make(old, requires_grad=trains)
    output = elmo(batch_to_ids(BATCHES[0]))
    output["elmo_representations"][0].square().sum().backward()
    bilm = [weight for name, weight in elmo.named_parameters() if "_elmo_lstm" in name]
    assert len(bilm) == 33
    assert all((weight.grad is not None) == trains for weight in bilm)
    assert all(weight.grad is not None for weight in elmo.scalar_mix_0.parameters())
    elmo(batch_to_ids(BATCHES[0]))["elmo_representations"][0].sum().backward()


def test_gradients_are_those_of_finite_differences(old):
    ids, weights = batch_to_ids([["a", "bank"], ["b"]]), torch.tensor([1.0, -2.0])

    def loss(elmo):
        elmo._elmo_lstm._elmo_lstm.reset_states()
        found = elmo(ids)["elmo_representations"][0]
        return (found[..., :2] * weights.to(found)).sum()

    elmo = make(old, requires_grad=True).double()
    loss(elmo).backward()
    bias = elmo.get_parameter("_elmo_lstm._token_embedder._elmo.bilm.forward_lm.0.bias")
    for place in (0, 13, 30):
        with torch.no_grad():
            bias[place] += 1e-4
            high = loss(elmo).item()
            bias[place] -= 2e-4
            low = loss(elmo).item()
            bias[place] += 1e-4
        assert bias.grad[place].item() == pytest.approx((high - low) / 2e-4, rel=1e-3, abs=1e-7)


def test_dropout_is_for_training_only(old):
    elmo = make(old, dropout=0.5)
    assert Elmo(old.options, old.weights, 1)._dropout.p == 0.5
    ids = batch_to_ids([["a", "b", "c"]])
    assert (elmo(ids)["elmo_representations"][0] == 0).any()
    assert not (elmo.eval()(ids)["elmo_representations"][0] == 0).any()


def test_a_module_can_take_the_place_of_the_bilm(old):
    bilm = _ElmoBiLm(old.options, old.weights)
    elmo = Elmo(None, None, 1, dropout=0.0, module=bilm)
    assert elmo.get_output_dim() == 10
    wanted = make(old)(batch_to_ids([["a"]]))
    torch.testing.assert_close(elmo(batch_to_ids([["a"]])), wanted)
    with pytest.raises(ConfigurationError, match="must be None"):
        Elmo(old.options, None, 1, module=bilm)


def test_the_character_encoder_gives_vectors_without_context(old):
    encoder = _ElmoCharacterEncoder(old.options, old.weights)
    output = encoder(batch_to_ids([["a", "bank"], ["b"]]))
    assert encoder.get_output_dim() == 5
    assert output["mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    found = output["token_embedding"].numpy()
    assert_close(found[0, 1:3], old.expected([[["a", "bank"]]])[0][0][0, :, :5])
    assert_close(found[1, 3], old.padding_vector())


def test_a_model_without_residuals_is_refused_as_in_allennlp(tmp_path):
    old = OldModel(tmp_path / "model", has_residuals=False)
    with pytest.raises(ConfigurationError, match=r"residual.*elmore\.load"):
        make(old)
    assert _ElmoCharacterEncoder(old.options, old.weights).get_output_dim() == 5  # has no LSTM


def test_a_missing_file_is_named(old):
    with pytest.raises(FileNotFoundError, match=r"no\.json not found"):
        Elmo("no.json", old.weights, 1)
    with pytest.raises(DataError, match=r"\(sentences, tokens, 50\)"):
        make(old)(torch.ones(1, 2, 3, dtype=torch.int64))


def test_a_copy_carries_its_own_state(old):
    elmo = make(old)
    ids = batch_to_ids([["a", "b"]])
    first = elmo(ids)["elmo_representations"][0]
    for copied in (copy.deepcopy(elmo), pickle.loads(pickle.dumps(elmo))):
        copied._elmo_lstm._elmo_lstm.reset_states()
        assert torch.equal(copied(ids)["elmo_representations"][0], first)
    assert not torch.allclose(elmo(ids)["elmo_representations"][0], first)

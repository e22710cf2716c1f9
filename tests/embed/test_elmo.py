import pickle

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import elmore
from elmore.embed.elmo import Elmo
from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError, DataError, ModelError
from elmore.weights.loading import load_model
from tests import reference, tiny

SENTENCES = [["a", "bank"], ["the", "river", "bank", "."], []]


def make(**settings):
    model = tiny.model()
    return model, Elmo(model.bilm, **{"dropout": 0.0, **settings})


def test_a_representation_is_the_mix_of_the_layers():
    model, elmo = make()
    output = elmo(model.batch(SENTENCES))
    assert output.representations[0].shape == (3, 4, 10)
    assert output.mask.tolist() == [
        [True, True, False, False],
        [True] * 4,
        [False] * 4,
    ]
    layers = model.bilm(model.batch(SENTENCES[1:2])).layers[:, 1:-1]
    assert_close(output.representations[0][1], layers.mean(dim=0))


def test_there_is_nothing_where_there_is_no_token():
    model, elmo = make(projection_dim=4)
    output = elmo(model.batch(SENTENCES))
    assert not output.representations[0][~output.mask].any()


def test_markers_are_kept_if_asked_for():
    model, elmo = make(keeps_markers=True)
    output = elmo(model.batch(SENTENCES))
    assert output.mask.sum(dim=1).tolist() == [4, 6, 2]
    assert_close(
        output.representations[0][0, :4],
        model.bilm(model.batch(SENTENCES[:1])).layers.mean(dim=0),
    )


def test_each_representation_learns_its_own_mix():
    model, elmo = make(num_representations=2)
    with torch.no_grad():
        elmo.mixes[1].weights.copy_(torch.tensor([9.0, 0.0, 0.0]))
    low, high = elmo(model.batch(SENTENCES)).representations
    assert not torch.allclose(low, high)
    (low.sum() + 2 * high.sum()).backward()
    assert elmo.mixes[0].weights.grad is not None
    assert elmo.mixes[1].weights.grad is not None


def test_a_frozen_bilm_gets_no_gradient_and_no_dropout():
    model, elmo = make()
    elmo.train()
    assert not elmo.bilm.training
    elmo(model.batch(SENTENCES)).representations[0].sum().backward()
    assert all(weight.grad is None for weight in model.bilm.parameters())


def test_a_trained_bilm_gets_gradients_everywhere():
    model, elmo = make(trains_bilm=True)
    elmo(model.batch(SENTENCES)).representations[0].square().sum().backward()
    assert all(weight.grad is not None for weight in model.bilm.parameters())


def test_a_bilm_that_was_frozen_before_is_trained_if_asked_for():
    model, _ = make()
    elmo = Elmo(model.bilm, trains_bilm=True)
    elmo(model.batch(SENTENCES)).representations[0].sum().backward()
    assert all(weight.grad is not None for weight in model.bilm.parameters())


def test_a_frozen_mix_is_frozen():
    _, elmo = make(trains_mix=False)
    assert not any(weight.requires_grad for weight in elmo.mixes.parameters())


def test_layer_norm_counts_all_tokens_of_the_batch_and_their_markers():
    model, elmo = make(normalizes=True, keeps_markers=True, initial_logits=[0.5, -1.0, 2.0])
    output = elmo(model.batch(SENTENCES))
    flat = model.bilm(model.batch(SENTENCES)).layers.detach().numpy()
    weights = np.array([0.5, -1.0, 2.0])
    wanted = reference.scalar_mix(flat, weights=weights, gamma=1.0, layer_norm=True)
    found = output.representations[0][output.mask].detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_carried_state_takes_no_gradient_along():
    model, elmo = make(trains_bilm=True, state="stream")
    for _ in range(2):  # a second pass through the first one's computation would fail
        elmo(model.batch(SENTENCES)).representations[0].sum().backward()


def test_carried_state_follows_the_precision_of_the_model():
    model, elmo = make(state="stream")
    elmo(model.batch(SENTENCES))
    assert elmo.double()(model.batch(SENTENCES)).representations[0].dtype == torch.float64


def test_dropout_comes_before_the_projection():
    """As in AllenNLP: with all else dropped, what is left is the projection's bias."""
    model, elmo = make(projection_dim=4, dropout=1.0)
    output = elmo(model.batch(SENTENCES))
    bias = elmo.projection.bias.expand_as(output.representations[0][output.mask])
    assert torch.equal(output.representations[0][output.mask], bias)


def test_without_representations_there_are_only_layers():
    with pytest.raises(ConfigError, match="give a whole number of at least 0"):
        make(num_representations=-1)
    model, elmo = make(num_representations=0)
    with pytest.raises(ConfigError, match="only encode and contextualize"):
        elmo(model.batch(SENTENCES))
    assert not [name for name in elmo.state_dict() if not name.startswith("bilm.")]


def test_encode_and_contextualize_give_the_layers_of_the_bilm():
    model = tiny.model()
    wanted = model.bilm(model.batch(SENTENCES)).layers
    elmo = Elmo(model, num_representations=0)
    for given in (SENTENCES, model.batch(SENTENCES)):
        tokens, lengths = elmo.encode(given)
        assert lengths.tolist() == [4, 6, 2]
        assert torch.equal(tokens, wanted[0, :, :5])
        assert torch.equal(elmo.contextualize(tokens, lengths), wanted)


def test_a_frozen_elmo_encodes_a_token_once_until_a_weight_changes(monkeypatch):
    model = tiny.model()
    elmo = Elmo(model, dropout=0.0)
    encoded = []
    encode = model.bilm.encode
    monkeypatch.setattr(model.bilm, "encode", lambda ids: encoded.append(ids) or encode(ids))
    first = elmo(SENTENCES).representations[0]
    num_calls = len(encoded)
    assert torch.equal(elmo(SENTENCES).representations[0], first)
    assert len(encoded) == num_calls
    with torch.no_grad():
        model.bilm.token_encoder.characters.embedding.weight.mul_(1.5)
    wanted = Elmo(model.bilm, dropout=0.0)(model.batch(SENTENCES)).representations[0]
    assert torch.equal(elmo(SENTENCES).representations[0], wanted)


def test_a_copy_has_a_cache_of_its_own():
    elmo = Elmo(tiny.model(), dropout=0.0)
    elmo(SENTENCES)
    copied = pickle.loads(pickle.dumps(elmo))
    with torch.no_grad():
        copied.bilm.token_encoder.projection.weight.mul_(2.0)
    changed = copied(SENTENCES).representations[0]
    assert not torch.allclose(changed, elmo(SENTENCES).representations[0])


def test_the_carried_state_can_be_saved_and_some_rows_reset():
    model, elmo = make(state="stream")
    assert elmo.carried_state is None
    batch = model.batch([["a"], ["b", "c"]])
    fresh = elmo(batch).representations[0]
    saved = elmo.carried_state
    second = elmo(batch).representations[0]
    elmo.carried_state = saved
    assert torch.equal(elmo(batch).representations[0], second)
    elmo.carried_state = saved
    elmo.reset_state(torch.tensor([True, False]))
    found = elmo(batch).representations[0]
    assert torch.equal(found[0], fresh[0])
    assert torch.equal(found[1], second[1])
    with pytest.raises(ValueError, match="each of 2 rows, got 3"):
        elmo.reset_state(torch.tensor([True, False, True]))
    elmo.carried_state = None
    assert torch.equal(elmo(batch).representations[0], fresh)


def test_the_vector_of_padding_is_that_of_a_token_without_characters():
    model = tiny.model()
    cnn = model.bilm.token_encoder.characters
    with torch.no_grad():
        cnn.embedding.weight[7] = 0.0
        wanted = model.bilm.token_encoder(torch.full((1, 9), 7), None)[0]
    assert_close(Elmo(model).encode_padding(), wanted)


def test_a_projection_sets_the_width():
    model, elmo = make(projection_dim=4)
    assert elmo.output_dim == 4
    assert elmo(model.batch(SENTENCES)).representations[0].shape[-1] == 4


def test_dropout_is_for_training_only():
    model, elmo = make(dropout=0.9)
    assert (elmo(model.batch(SENTENCES)).representations[0][1] == 0).any()
    assert not (elmo.eval()(model.batch(SENTENCES)).representations[0][1] == 0).any()


def test_the_penalty_counts_every_mix():
    _, elmo = make(num_representations=2, initial_logits=[1.0, 0.0, 2.0])
    assert elmo.penalty(0.1).item() == pytest.approx(0.1 * 5 * 2)


def test_policy_reset_forgets_and_policy_stream_remembers():
    model, elmo = make()
    batch = model.batch(SENTENCES)
    assert torch.equal(elmo(batch).representations[0], elmo(batch).representations[0])
    model, elmo = make(state="stream")
    first = elmo(batch).representations[0]
    assert not torch.allclose(first, elmo(batch).representations[0])
    elmo.reset_state()
    assert torch.equal(first, elmo(batch).representations[0])


def test_policy_stream_keeps_the_rows_a_smaller_batch_left_out():
    """As bilm-tf and AllenNLP: row 1 keeps its state during a batch of row 0 alone."""
    model, elmo = make(state="stream")
    elmo(model.batch([["a"], ["b"]]))
    elmo(model.batch([["c"]]))
    found = elmo(model.batch([["d"], ["e"]])).representations[0][1]
    alone, other = make(state="stream")
    other(alone.batch([["b"]]))
    assert torch.equal(found, other(alone.batch([["e"]])).representations[0][0])


def test_policy_document_forgets_where_a_document_starts():
    model, elmo = make(state="document")
    batch = model.batch([["a", "b"], ["c"]])
    yes, no = torch.tensor([True, True]), torch.tensor([False, True])
    first = elmo(batch, starts_document=yes).representations[0]
    second = elmo(batch, starts_document=no).representations[0]
    assert not torch.allclose(first[0], second[0])
    assert torch.equal(first[1], second[1])
    with pytest.raises(ConfigError, match="starts_document"):
        elmo(batch)


def test_a_model_or_its_path_does_as_well_as_its_bilm(tmp_path):
    model = tiny.model()
    model.save_pretrained(tmp_path / "model")
    alone = Elmo(model.bilm, dropout=0.0, num_representations=2, projection_dim=3)
    wanted = Elmo(model.bilm, dropout=0.0)(model.batch(SENTENCES)).representations[0]
    for given in (model, tmp_path / "model", str(tmp_path / "model")):
        elmo = Elmo(given, dropout=0.0)
        assert torch.equal(elmo(model.batch(SENTENCES)).representations[0], wanted)
        like = Elmo(given, dropout=0.0, num_representations=2, projection_dim=3)
        assert list(like.state_dict()) == list(alone.state_dict())
    assert load_model(tmp_path / "model").fingerprint() == model.fingerprint()


def test_tokenized_sentences_do_as_well_as_their_batch():
    model = tiny.model(tiny.word_and_char_config())
    elmo = Elmo(model, dropout=0.0)
    wanted = elmo(model.batch(SENTENCES)).representations[0]
    assert torch.equal(elmo(SENTENCES).representations[0], wanted)
    assert torch.equal(elmo(iter(SENTENCES)).representations[0], wanted)
    moved = elmo.double()
    assert moved(SENTENCES).representations[0].dtype == torch.float64


@pytest.mark.parametrize("given", [None, 3, tiny.byte_config(), torch.nn.Linear(1, 1)])
def test_what_is_not_a_model_is_named(given):
    with pytest.raises(ConfigError, match=r"a model was expected; give what elmore\.load"):
        Elmo(given)


def test_a_missing_or_released_model_is_named(tmp_path):
    with pytest.raises(ModelError, match="there is no model at"):
        Elmo(tmp_path / "nothing")
    model = tiny.model()
    model.release_weights()
    with pytest.raises(ModelError, match="load_model"):
        Elmo(model)


def test_what_are_not_sentences_is_named():
    model = tiny.model()
    with pytest.raises(ConfigError, match=r"biLM alone.*Elmo\(model\).*model\.batch"):
        Elmo(model.bilm)([["a", "list"]])
    elmo = Elmo(model)
    for given in ("one string", None, 5):
        with pytest.raises(DataError, match="where sentences were expected; give lists of tokens"):
            elmo(given)
    with pytest.raises(DataError, match="expected a list of tokens, got the string"):
        elmo(["a string in a list"])
    for given in ([[1, 2]], [[["a"]]], [None]):
        with pytest.raises(DataError, match="must be a str"):
            elmo(given)
        with pytest.raises(DataError, match="must be a str"):
            model.batch(given)


def test_an_embedder_goes_into_elmo(tmp_path):
    tiny.model().save_pretrained(tmp_path / "model")
    wanted = Elmo(tiny.model(), dropout=0.0)(SENTENCES).representations[0]
    for given in (elmore.load(tmp_path / "model"), Embedder(tiny.model())):
        assert torch.equal(Elmo(given, dropout=0.0)(SENTENCES).representations[0], wanted)


def test_padded_character_ids_are_read_as_their_tokens_are():
    model = tiny.model()
    elmo = Elmo(model, dropout=0.0)
    longest = max(map(len, SENTENCES))
    ids = torch.zeros(len(SENTENCES), longest, 9, dtype=torch.int64)
    for row, sentence in enumerate(SENTENCES):
        for column, token in enumerate(sentence):
            ids[row, column] = 1 + torch.from_numpy(model.speller.alphabet.spell(token))
    wanted, found = elmo(SENTENCES), elmo(ids)
    assert torch.equal(found.representations[0], wanted.representations[0])
    assert torch.equal(found.mask, wanted.mask)
    ids[0, 0, 3] = 0  # no character
    assert not torch.equal(elmo(ids).representations[0], wanted.representations[0])
    for wrong, message in (
        (ids[0], "shape"),
        (ids.float(), "torch.float32"),
        (ids[:, :, :5], r"\(sentences, tokens, 9\)"),
        (torch.cat([torch.zeros_like(ids[:, :1]), ids], dim=1), "after padding"),
        (torch.where(ids > 0, ids, -1), r"must be from 0 \(padding\) to 261, got -1 to "),
        (torch.cat([ids, torch.full_like(ids[:, :1], -1)], dim=1), "got -1 to "),
        (ids > 0, "integer character ids"),
        (ids + 300 * (ids > 0), r"from 0 \(padding\) to 261, got 0 to"),
    ):
        with pytest.raises(DataError, match=message):
            elmo(wrong)


@pytest.mark.parametrize("keeps_markers", [False, True])
def test_padded_ids_keep_their_width(keeps_markers):
    """Labels that are padded like the ids must fit the vectors."""
    model = tiny.model()
    elmo = Elmo(model, dropout=0.0, keeps_markers=keeps_markers)
    num_markers = 2 if keeps_markers else 0
    ids = torch.zeros(2, 7, 9, dtype=torch.int64)
    ids[0, :3] = ids[1, :1] = 1 + torch.from_numpy(model.speller.alphabet.spell("a"))
    output = elmo(ids)
    assert output.representations[0].shape == (2, 7 + num_markers, 10)
    assert output.mask.sum(dim=1).tolist() == [3 + num_markers, 1 + num_markers]
    narrow = elmo(ids[:, :3]).representations[0]
    assert torch.equal(output.representations[0][:, : 3 + num_markers], narrow)
    assert not output.representations[0][:, 3 + num_markers :].any()
    assert elmo(torch.zeros_like(ids)).mask.shape == (2, 7 + num_markers)


def test_no_sentences_give_no_vectors():
    elmo = Elmo(tiny.model(), projection_dim=4)
    for sentences in ([], torch.zeros(0, 5, 9, dtype=torch.int64)):
        output = elmo(sentences)
        assert output.representations[0].shape == (0, *output.mask.shape[1:], 4)
    assert elmo([]).mask.shape == (0, 0)


@pytest.mark.parametrize("kernel", ["torch", ""])
def test_training_does_not_change_the_embedder(kernel, monkeypatch, tmp_path):
    monkeypatch.setenv("ELMORE_KERNEL", kernel)
    tiny.model().save_pretrained(tmp_path / "model")
    for embedder in (elmore.load(tmp_path / "model"), Embedder(tiny.model())):
        before, hashed = embedder.embed(SENTENCES), embedder.model.fingerprint()
        elmo = Elmo(embedder, trains_bilm=True)
        with torch.no_grad():
            for weight in elmo.bilm.parameters():
                weight.mul_(0.5)
        elmo.double()
        after = embedder.embed([*SENTENCES, ["new", "words"]])[: len(SENTENCES)]
        assert all(map(np.array_equal, before, after))
        assert embedder.model.fingerprint() == hashed


def test_a_trained_bilm_is_saved(tmp_path):
    tiny.model().save_pretrained(tmp_path / "model")
    for number, given in enumerate((str(tmp_path / "model"), elmore.load(tmp_path / "model"))):
        elmo = Elmo(given, trains_bilm=True, dropout=0.0)
        with torch.no_grad():
            for weight in elmo.bilm.parameters():
                weight.mul_(0.5)
        elmo.save(tmp_path / f"trained{number}")
        loaded = elmore.load(tmp_path / f"trained{number}")
        wanted = elmo(SENTENCES).representations[0][1].detach().numpy()
        np.testing.assert_allclose(loaded.embed(SENTENCES)[1], wanted, atol=2e-6)
        assert pickle.loads(pickle.dumps(elmo)).state_dict().keys() == elmo.state_dict().keys()
    with pytest.raises(ConfigError, match=r"biLM alone.*Elmo\(model\)"):
        Elmo(tiny.model().bilm).save(tmp_path / "bilm")
    assert not (tmp_path / "bilm").exists()


def test_the_state_is_set_by_name_and_by_tensors():
    model, elmo = make()
    elmo.state = "stream"
    elmo(model.batch(SENTENCES))
    carried = elmo.carried_state
    first = elmo(model.batch(SENTENCES)).representations[0]
    elmo.carried_state = (carried.hidden, carried.cell)
    assert torch.equal(elmo(model.batch(SENTENCES)).representations[0], first)
    with pytest.raises(ConfigError, match="state is 'streams'; choose one of"):
        elmo.state = "streams"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dropout": 2}, "dropout is 2; give a number from 0 to 1"),
        ({"initial_logits": [1, 2]}, r"initial_logits is \[1, 2\]; give 3 finite numbers"),
        ({"projection_dim": -1}, "projection_dim is -1; give a whole number"),
        ({"num_representations": 1.5}, "num_representations is 1.5; give a whole number"),
        ({"state": "carry"}, "state is 'carry'; choose one of"),
    ],
)
def test_impossible_settings_are_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        make(**settings)


def test_the_old_name_of_the_logits_still_works():
    with pytest.warns(FutureWarning, match="initial_weights= is now called initial_logits="):
        _, elmo = make(initial_weights=[1.0, 2.0, 3.0])
    assert elmo.mixes[0].weights.tolist() == [1.0, 2.0, 3.0]

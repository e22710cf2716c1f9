import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from elmore.model import token_encoder
from elmore.model.token_encoder import CharacterCNN, Highway
from elmore.text.characters import ByteAlphabet
from tests import tiny

FILTERS = [(1, 4), (2, 5), (5, 6)]


def make_cnn(**settings):
    torch.manual_seed(0)
    return CharacterCNN(**{"num_units": 261, "embedding_dim": 3, "filters": FILTERS, **settings})


def spell(*tokens, max_chars=12):
    alphabet = ByteAlphabet(max_chars=max_chars)
    return torch.stack([torch.from_numpy(alphabet.spell(token)) for token in tokens])


def convolve(cnn, char_ids, activate):
    """What the network computes, by convolution over all positions."""
    chars = cnn.embedding(char_ids).transpose(1, 2)
    strongest = []
    for width, layer in zip(cnn.widths, cnn.filters, strict=True):
        kernel = layer.weight.unflatten(1, (width, -1)).transpose(1, 2)
        strongest.append(functional.conv1d(chars, kernel, layer.bias).amax(dim=2))
    return activate(torch.cat(strongest, dim=1))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=9), st.integers(5, 20))
def test_leaving_out_filler_changes_no_bit(tokens, max_chars):
    cnn = make_cnn()
    ids = spell(*tokens, max_chars=max_chars)
    full = torch.arange(max_chars).unsqueeze(0)  # a token of the full width: nothing to leave out
    assert torch.equal(cnn(torch.cat([ids, full]))[:-1], cnn(ids))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=9), st.booleans(), st.booleans())
def test_numbers_and_gradients_are_those_of_a_convolution(tokens, uses_tanh, is_frozen):
    cnn = make_cnn(uses_tanh=uses_tanh).double()
    cnn.embedding.requires_grad_(not is_frozen)
    char_ids = spell(*tokens)
    found = cnn(char_ids)
    wanted = convolve(cnn, char_ids, torch.tanh if uses_tanh else torch.relu)
    torch.testing.assert_close(found, wanted, atol=1e-12, rtol=1e-12)
    weights = [weight for weight in cnn.parameters() if weight.requires_grad]
    weigh = torch.randn(found.shape, dtype=torch.float64)
    torch.testing.assert_close(
        torch.autograd.grad((found * weigh).sum(), weights),
        torch.autograd.grad((wanted * weigh).sum(), weights),
        atol=1e-10,
        rtol=1e-10,
    )


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_training_large_and_small_alphabets_give_the_same_bits(mode, monkeypatch):
    cnn = make_cnn(embedding_dim=16, filters=[(1, 32), (4, 128), (7, 300)])
    char_ids = spell("the", "bank", "of", "a", "río", "🙂", "incomprehensibly")
    wanted = cnn(char_ids)
    with mode():
        assert torch.equal(cnn(char_ids), wanted)
        assert torch.equal(cnn(char_ids[3:4]), wanted[3:4])
        monkeypatch.setattr(token_encoder, "MAX_KEPT_UNITS", 260)
        cnn._kept = None
        assert torch.equal(cnn(char_ids), wanted)
        assert cnn._kept is None


def step(cnn):
    optimizer = torch.optim.SGD(cnn.parameters(), lr=1.0)
    cnn(spell("step")).sum().backward()
    optimizer.step()


def load(cnn):
    cnn.load_state_dict({name: -weight for name, weight in cnn.state_dict().items()})


def assign(cnn):
    cnn.load_state_dict({name: -weight for name, weight in cnn.state_dict().items()}, assign=True)


def copy_inside_inference(cnn):
    with torch.inference_mode():
        cnn.filters[1].weight.copy_(-cnn.filters[1].weight)


def write_data(cnn):
    cnn.filters[2].weight.data.neg_()


def write_array(cnn):
    cnn.embedding.weight.detach().numpy()[:] *= -1


def replace(cnn):
    cnn.embedding.weight = nn.Parameter(-cnn.embedding.weight.detach())


def widen(cnn):
    cnn.double()


def change_bias(cnn):
    cnn.filters[0].bias.data.add_(1.0)


@pytest.mark.parametrize(
    "change",
    [
        step,
        load,
        assign,
        copy_inside_inference,
        write_data,
        write_array,
        replace,
        widen,
        change_bias,
    ],
)
def test_a_changed_weight_is_seen_at_once(change):
    cnn = make_cnn()
    char_ids = spell("a", "bank")
    with torch.inference_mode():
        before = cnn(char_ids)
    change(cnn)
    wanted = cnn(char_ids).detach()  # in training nothing is kept
    assert before.dtype != wanted.dtype or not torch.equal(before, wanted)
    with torch.inference_mode():
        assert torch.equal(cnn(char_ids), wanted)


def test_tables_are_kept_while_weights_stay(monkeypatch):
    cnn = make_cnn()
    with torch.inference_mode():
        wanted = cnn(spell("a", "bank"))
        monkeypatch.setattr(token_encoder, "make_tables", None)
        assert torch.equal(cnn(spell("a", "bank")), wanted)


def test_nothing_is_kept_while_weights_learn():
    """As when gradients of several batches add up to one step."""
    cnn = make_cnn()
    for _ in range(2):
        cnn(spell("a", "bank")).sum().backward()
    assert cnn._kept is None
    wanted = make_cnn()
    (2 * wanted(spell("a", "bank")).sum()).backward()
    for found, right in zip(cnn.parameters(), wanted.parameters(), strict=True):
        torch.testing.assert_close(found.grad, right.grad)


def test_weights_made_for_inference_only_keep_tables_too():
    with torch.inference_mode():
        cnn = make_cnn()
        wanted = cnn(spell("a"))
        cnn.filters[0].weight.neg_()
        changed = cnn(spell("a"))
    assert not torch.equal(changed, wanted)
    with torch.no_grad():
        assert torch.equal(cnn(spell("a")), changed)


def test_kept_tables_are_no_part_of_the_network():
    cnn = make_cnn()
    names = list(cnn.state_dict())
    with torch.inference_mode():
        wanted = cnn(spell("a"))
    assert cnn._kept is not None
    assert list(cnn.state_dict()) == names
    for copied in (copy.deepcopy(cnn), pickle.loads(pickle.dumps(cnn))):
        assert copied._kept is None
        with torch.inference_mode():
            assert torch.equal(copied(spell("a")), wanted)
            copied.filters[0].weight.neg_()
            assert not torch.equal(copied(spell("a")), wanted)
            assert torch.equal(cnn(spell("a")), wanted)


def test_layers_above_learn_from_tables_kept_in_inference():
    model = tiny.model()
    encoder = model.bilm.token_encoder
    encoder.characters.requires_grad_(False)
    char_ids = model.batch([["a", "bad"]]).tokens.char_ids
    with torch.inference_mode():
        wanted = encoder(char_ids, None)
    found = encoder(char_ids, None)
    assert torch.equal(found, wanted)
    found.sum().backward()
    assert encoder.highways[0].gate.weight.grad.any()


@pytest.mark.parametrize("wrong", [-1, 262])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_ids_outside_the_alphabet_are_refused(wrong, mode):
    char_ids = spell("a")
    char_ids[0, 0] = wrong
    with mode(), pytest.raises(IndexError, match="expected character ids from 0 to 261, got"):
        make_cnn(filters=[(2, 3)])(char_ids)


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_the_id_after_the_last_unit_is_a_zero_vector(mode):
    cnn = make_cnn()
    with torch.no_grad():
        cnn.embedding.weight[7] = 0.0
    seven = spell("a")
    seven[0, 1:5] = 7
    none = seven.where(seven != 7, 261)
    with mode():
        torch.testing.assert_close(cnn(none), cnn(seven))


def test_no_tokens_have_no_vectors():
    with torch.inference_mode():
        assert make_cnn()(spell("a")[:0]).shape == (0, 15)


def test_a_closed_gate_carries_its_input_through():
    highway = Highway(dim=5)
    x = torch.randn(8, 5)
    with torch.no_grad():
        highway.gate.weight.zero_()
        highway.gate.bias.fill_(-100.0)
        assert torch.equal(highway(x), x)
        highway.gate.bias.fill_(100.0)
        torch.testing.assert_close(highway(x), torch.relu(highway.transform(x)))

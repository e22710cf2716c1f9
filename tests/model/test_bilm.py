"""What a reading direction may know, and what a sentence's neighbors may not change."""

import pytest
import torch

from elmore.text.batches import make_batch
from tests import tiny

SENTENCE = ["the", "bank", "of", "a", "river"]


@pytest.fixture(scope="module")
def model():
    return tiny.model(tiny.byte_config(output_clip=None))


def layers(model, *sentences):
    """Return (L, tokens, 2D) of the first sentence."""
    with torch.no_grad():
        return model.bilm(model.batch(sentences)).layers[:, 1 : len(sentences[0]) + 1]


def test_the_forward_half_never_sees_the_future(model):
    changed = layers(model, [*SENTENCE[:3], "XX", "yy"])
    same = layers(model, SENTENCE)
    half = same.shape[2] // 2
    assert torch.equal(changed[1:, :3, :half], same[1:, :3, :half])
    assert not torch.equal(changed[1:, 3:, :half], same[1:, 3:, :half])


def test_the_backward_half_never_sees_the_past(model):
    changed = layers(model, ["XX", "yy", *SENTENCE[2:]])
    same = layers(model, SENTENCE)
    half = same.shape[2] // 2
    assert torch.equal(changed[1:, 2:, half:], same[1:, 2:, half:])
    assert not torch.equal(changed[1:, :2, half:], same[1:, :2, half:])


def test_each_half_sees_the_whole_of_its_side(model):
    """A change at the far end reaches every token through the LSTMs."""
    same = layers(model, SENTENCE)
    half = same.shape[2] // 2
    first_changed = layers(model, ["XX", *SENTENCE[1:]])
    assert not torch.isclose(first_changed[1, -1, :half], same[1, -1, :half], atol=0).all()
    last_changed = layers(model, [*SENTENCE[:-1], "XX"])
    assert not torch.isclose(last_changed[1, 0, half:], same[1, 0, half:], atol=0).all()


def test_layer_zero_is_the_token_twice(model):
    zero = layers(model, SENTENCE)[0]
    half = zero.shape[1] // 2
    assert torch.equal(zero[:, :half], zero[:, half:])


def test_batch_mates_change_no_bit(model):
    alone = layers(model, SENTENCE)
    assert torch.equal(alone, layers(model, SENTENCE, ["x"]))
    assert torch.equal(alone, layers(model, SENTENCE, [f"w{n}" for n in range(40)], [], ["y"] * 7))


def test_the_final_state_belongs_to_its_sentence(model):
    with torch.no_grad():
        together = model.bilm(model.batch([["a"], SENTENCE, ["b", "c"]])).state
        for row, sentence in enumerate([["a"], SENTENCE, ["b", "c"]]):
            alone = model.bilm(model.batch([sentence])).state
            assert torch.equal(together[row : row + 1].hidden, alone.hidden)
            assert torch.equal(together[row : row + 1].cell, alone.cell)


def test_reading_on_from_the_state_is_reading_at_once(model):
    """The forward LM of one long sentence is that of its halves, state handed over."""
    batch = model.batch([SENTENCE])
    with torch.no_grad():
        vectors = model.bilm.token_encoder(batch.tokens.char_ids, None)[batch.positions]
        whole = model.bilm.contextualize(vectors, torch.tensor([7]))
        first = model.bilm.contextualize(vectors[:3], torch.tensor([3]))
        second = model.bilm.contextualize(vectors[3:], torch.tensor([4]), first.state)
    half = whole.layers.shape[2] // 2
    assert torch.equal(second.layers[1:, :, :half], whole.layers[1:, 3:, :half])
    assert torch.equal(second.state.hidden[0], whole.state.hidden[0])


def test_no_sentences_give_no_layers(model):
    assert model.bilm(model.batch([])).layers.shape == (3, 0, 10)


def test_a_stored_initial_state_is_where_sentences_start(model):
    other = tiny.model()
    with torch.no_grad():
        other.bilm.initial_cell.fill_(0.5)
        other.bilm.initial_hidden.fill_(-0.25)
        plain = tiny.model()
        state = other.bilm.initial_state(1)
        given = plain.bilm(plain.batch([SENTENCE]), state).layers
        assert torch.equal(other.bilm(other.batch([SENTENCE])).layers, given)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_gives_the_same_numbers(model):
    batch = make_batch([SENTENCE, ["x"]], model.speller)
    on_cpu = model.bilm(batch).layers
    on_gpu = model.to("cuda").bilm(batch.to("cuda")).layers.cpu()
    model.to("cpu")
    torch.testing.assert_close(on_gpu, on_cpu, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kernel", ["native", "torch"])
def test_autocast_reaches_both_directions(monkeypatch, kernel):
    if kernel == "torch":
        monkeypatch.setenv("ELMORE_KERNEL", "torch")
    model = tiny.model()
    batch = model.batch([["a", "bank"], ["of"]])
    exact = model.bilm(batch).layers
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
            found = model.bilm(batch).layers
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(found.float(), exact.detach(), atol=0.1, rtol=0.1)


def test_a_wrapped_layer_is_called():
    class Doubled(torch.nn.Module):
        def __init__(self, lstm):
            super().__init__()
            self.lstm = lstm
            self.bias = lstm.bias

        def forward(self, *arguments):
            output, hidden, cell = self.lstm(*arguments)
            return 2 * output, hidden, cell

    model = tiny.model(tiny.byte_config(has_residuals=False))
    batch = model.batch([["a", "bank"]])
    plain = model.bilm(batch).layers
    for lstms in (model.bilm.forward_lm, model.bilm.backward_lm):
        lstms[1] = Doubled(lstms[1])
    doubled = model.bilm(batch).layers
    torch.testing.assert_close(doubled[2], 2 * plain[2], atol=1e-5, rtol=1e-5)


def test_a_hook_is_called():
    model = tiny.model()
    seen = []
    model.bilm.forward_lm[0].register_forward_hook(lambda *_: seen.append(1))
    with torch.no_grad():
        model.bilm(model.batch([["a"]]))
    assert seen == [1]

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.model import token_encoder
from elmore.model.token_encoder import CharacterCNN, Highway
from elmore.text.characters import ByteAlphabet
from tests import tiny


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=9), st.integers(5, 20))
def test_leaving_out_filler_changes_no_bit(tokens, max_chars):
    cnn = CharacterCNN(num_units=261, embedding_dim=3, filters=[(1, 4), (2, 5), (5, 6)])
    alphabet = ByteAlphabet(max_chars=max_chars)
    ids = torch.stack([torch.from_numpy(alphabet.spell(token)) for token in tokens])
    ids = torch.cat([ids, ids.new_zeros((16 - len(ids), max_chars))])
    ids[len(tokens) :] = ids[0]
    whole = ids.clone()
    whole[-1] = torch.arange(max_chars)  # a token of the full width: nothing can be dropped
    assert torch.equal(cnn(ids)[: len(tokens)], cnn(whole)[: len(tokens)])


def test_filler_is_what_all_tokens_end_in():
    ids = torch.tensor([[7, 8, 9, 0, 0, 0], [7, 9, 0, 0, 0, 0]])
    assert token_encoder._drop_filler(ids, keep=2).tolist() == [[7, 8, 9, 0, 0], [7, 9, 0, 0, 0]]
    assert token_encoder._drop_filler(ids, keep=9).shape == ids.shape
    assert token_encoder._drop_filler(ids[:, :3], keep=1).shape == (2, 3)


def test_a_closed_gate_carries_its_input_through():
    highway = Highway(dim=5)
    x = torch.randn(8, 5)
    with torch.no_grad():
        highway.gate.weight.zero_()
        highway.gate.bias.fill_(-100.0)
        assert torch.equal(highway(x), x)
        highway.gate.bias.fill_(100.0)
        torch.testing.assert_close(highway(x), torch.relu(highway.transform(x)))


def test_filling_up_a_block_keeps_filler_droppable(monkeypatch):
    model = tiny.model()
    widths = []
    embed = model.bilm.token_encoder.characters.embedding.forward
    monkeypatch.setattr(
        model.bilm.token_encoder.characters.embedding,
        "forward",
        lambda ids: widths.append(ids.shape) or embed(ids),
    )
    model.bilm(model.batch([["a", "b", "c"]]))
    assert widths == [(8, 6)]  # 5 tokens and markers in a block; 3 of 9 characters, 3 of filler

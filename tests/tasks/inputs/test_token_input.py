import pytest
import torch
from torch.testing import assert_close

from elmore.tasks.inputs.char_filters import CharFilters
from elmore.tasks.inputs.elmo_vectors import ElmoVectors
from elmore.tasks.inputs.token_batch import TokenBatcher
from elmore.tasks.inputs.token_input import TokenInput

WORDS = ["bank", "of"]
SENTENCES = [["the", "bank", "of"], ["bank"]]


def make(*, below=True, above=True, **changes):
    def mix():
        return ElmoVectors(num_layers=3, layer_dim=4, dropout=0.0)

    parts = {"words": torch.randn(4, 5), "characters": CharFilters(num_filters=3)}
    return TokenInput(
        **{**parts, "below": mix() if below else None, "above": mix() if above else None, **changes}
    )


def make_batch(sentences=SENTENCES, *, filler=100.0):
    """A batch with layers that follow from the token, and others behind the end."""
    tokens = TokenBatcher(words=WORDS, max_chars=6).make(sentences)
    layers = torch.full((3, *tokens.words.shape, 4), filler)
    for row, sentence in enumerate(sentences):
        for place, token in enumerate(sentence):
            layers[:, row, place] = len(token) + torch.tensor([-1.0, 0.0, 1.0])[:, None]
    return tokens.with_layers(layers)


def test_parts_stand_side_by_side():
    tokens = make()
    batch = make_batch()
    found = tokens.below(batch)
    assert found.shape == (2, 3, tokens.input_dim)
    assert tokens.input_dim == 5 + 3 + 4
    words, characters, elmo = found.split([5, 3, 4], dim=-1)
    assert_close(words[0], tokens.words(batch.words)[0])
    assert_close(characters[0], tokens.characters(batch.spellings))
    assert_close(elmo[0], torch.tensor([3.0, 4.0, 2.0])[:, None].expand(3, 4))
    hidden = torch.randn(2, 3, 7)
    above = tokens.above(hidden, batch)
    assert above.shape == (2, 3, 7 + tokens.above_dim)
    assert torch.equal(above[..., :7], hidden)


def test_each_part_may_be_missing_but_not_all():
    assert make(words=None).input_dim == 7
    assert make(characters=None, below=False).input_dim == 5
    alone = make(words=None, characters=None)
    assert alone.below(make_batch()).shape == (2, 3, 4)
    with pytest.raises(ValueError, match="needs words, characters or ELMo"):
        make(words=None, characters=None, below=False)
    hidden = torch.randn(2, 3, 7)
    assert make(above=False).above(hidden, make_batch()) is hidden


def test_padding_and_batch_mates_change_nothing():
    tokens = make()
    together = tokens.below(make_batch())
    assert torch.equal(tokens.below(make_batch(filler=-7.0)), together)
    assert not together[1, 1:].any()
    for row, sentence in enumerate(SENTENCES):
        alone = tokens.below(make_batch([sentence]))
        assert_close(alone[0], together[row, : len(sentence)])


def test_gradients_reach_everything_and_no_token_has_none():
    tokens = make()
    batch = make_batch()
    loss = tokens.above(tokens.below(batch), batch).square().sum()
    loss.backward()
    for name, weight in tokens.named_parameters():
        assert weight.grad.any(), name
    assert not tokens.words.trained.grad[0].any()


def test_penalties_of_both_mixes_are_added():
    tokens = make()
    with torch.no_grad():
        tokens.elmo_below.mix.weights.fill_(2.0)
        tokens.elmo_above.mix.weights.fill_(1.0)
    assert tokens.penalty(0.1).item() == pytest.approx(0.1 * (12 + 3))
    assert make(below=False, above=False).penalty(0.1) == 0.0


def test_a_batch_without_layers_is_our_mistake():
    with pytest.raises(ValueError, match="no layers of a biLM"):
        make().below(make_batch().with_layers(None))

import numpy as np
import pytest
import torch

from elmore.embed.embedder import Embedder
from elmore.embed.layer_source import LiveLayers, find_dtype, pad_layers, round_layers
from elmore.errors import ConfigError, DataError, ModelError
from tests import tiny

SENTENCES = [["a", "bad", "cafe"], ["a"], ["bad", "a"]]


def large_model(factor):
    """A model whose token vectors are this many times as large."""
    model = tiny.model()
    with torch.no_grad():
        for weight in model.bilm.token_encoder.projection.parameters():
            weight.mul_(factor)
    return model


@pytest.mark.parametrize(("precision", "kind"), [("f16", np.float16), ("f32", np.float32)])
def test_a_task_sees_the_rounded_layers_of_an_embedder_and_zeros_behind_them(precision, kind):
    embedder = Embedder(tiny.model())
    source = LiveLayers(embedder, precision)
    found = source.find(SENTENCES)
    assert (source.num_layers, source.layer_dim) == (3, 10)
    assert (found.shape, found.dtype) == ((3, 3, 3, 10), torch.float32)
    for place, layers in enumerate(embedder.embed(SENTENCES, layers="all")):
        num_tokens = layers.shape[1]
        wanted = layers.astype(kind).astype(np.float32)
        np.testing.assert_array_equal(found[:, place, :num_tokens].numpy(), wanted)
        assert not found[:, place, num_tokens:].any()


def test_layers_are_in_half_precision_by_default():
    live = LiveLayers(Embedder(tiny.model()))
    found = live.find(SENTENCES)
    assert torch.equal(found, found.half().float())
    assert live.precision == "f16"


def test_bytes_are_those_that_other_machines_read():
    for precision, stored in (("f16", b"\x00\x3c"), ("f32", b"\x00\x00\x80\x3f")):
        assert np.ones(1, find_dtype(precision)).tobytes() == stored


def test_sentences_around_it_change_nothing():
    live = LiveLayers(Embedder(tiny.model()))
    together = live.find(SENTENCES)
    for place, sentence in enumerate(SENTENCES):
        alone = live.find([sentence])
        assert torch.equal(alone[:, 0], together[:, place, : len(sentence)])


def test_a_repeated_sentence_is_computed_once(monkeypatch):
    embedder = Embedder(tiny.model())
    computed = []
    embed = embedder.embed

    def note(given, **options):
        computed.extend(given)
        return embed(given, **options)

    monkeypatch.setattr(embedder, "embed", note)
    found = LiveLayers(embedder).find([["a"], ["bad"], ("a",)])
    assert computed == [("a",), ("bad",)]
    assert torch.equal(found[:, 0], found[:, 2])


@pytest.mark.parametrize("state", ["document", "stream"])
def test_layers_that_depend_on_what_came_before_are_refused(state):
    with pytest.raises(ConfigError, match=f"has '{state}'.*state='reset'"):
        LiveLayers(Embedder(tiny.model(), state=state))


def test_what_half_precision_cannot_hold_is_refused_and_single_precision_offered():
    embedder = Embedder(large_model(1e6))
    with pytest.raises(ModelError, match=r"gives \S+e\+\S+ for a token.* 65504; .*'f32'"):
        LiveLayers(embedder, "f16").find([["bad"]])
    assert LiveLayers(embedder, "f32").find([["bad"]]).abs().max() > 65504


def test_the_largest_half_is_still_a_number():
    layers = np.full((1, 1, 2), 65519, dtype=np.float32)
    assert round_layers(layers, LiveLayers(Embedder(tiny.model())).precision).max() == 65504


@pytest.mark.parametrize("precision", ["f16", "f32"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_a_number_is_refused_in_any_precision(precision, number):
    live = LiveLayers(Embedder(tiny.model()), precision)
    with pytest.raises(ModelError, match="infinite numbers or NaN"):
        round_layers(np.full((1, 1, 2), number, dtype=np.float32), live.precision)


def test_text_and_unknown_precisions_are_refused():
    with pytest.raises(ConfigError, match="precision is 'f8'; choose one of: f32, f16"):
        LiveLayers(Embedder(tiny.model()), "f8")
    with pytest.raises(DataError, match="expected a list of tokens"):
        LiveLayers(Embedder(tiny.model())).find(["a bad cafe"])


def test_padding_keeps_each_sentence_in_its_row():
    one, two = (np.full((2, length, 3), length, dtype=np.float16) for length in (1, 2))
    padded = pad_layers([one, two])
    assert padded[:, 0].tolist() == [[[1.0] * 3, [0.0] * 3]] * 2
    assert padded[:, 1].tolist() == [[[2.0] * 3] * 2] * 2

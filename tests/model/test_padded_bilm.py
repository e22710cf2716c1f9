"""The padded biLM, as `torch.export` records it, against numpy and against the packed one."""

import numpy as np
import pytest
import torch
from torch.export import Dim

from elmore.compat.allennlp.modules.elmo import batch_to_ids
from elmore.embed.elmo import Elmo
from elmore.errors import ElmoreError
from elmore.model.padded_bilm import add_markers, convolve, reverse
from tests import reference, tiny

SENTENCES = [["A", "bank", "of", "rivers"], [], ["déjà"]]
OTHERS = [["of"], ["A", "longer", "sentence", "of", "words", "that", "continues"]]


def spell(model, sentences):
    """Return padded ids of a model whose tokens have fewer than 50 characters."""
    alphabet = model.speller.alphabet
    ids = np.zeros((len(sentences), max(map(len, sentences)), alphabet.max_chars), np.int64)
    for row, tokens in enumerate(sentences):
        for column, token in enumerate(tokens):
            ids[row, column] = alphabet.spell_all([token])[0] + 1
    return torch.from_numpy(ids)


def test_markers_are_put_around_every_sentence():
    ids = torch.tensor([[[5, 6], [7, 0]], [[0, 0], [0, 0]]])
    begin, end = torch.tensor([90, 91]), torch.tensor([92, 93])
    marked, lengths = add_markers(ids, begin=begin, end=end, num_units=50)
    assert lengths.tolist() == [4, 2]
    assert marked[0].tolist() == [[90, 91], [4, 5], [6, 50], [92, 93]]
    assert marked[1, :2].tolist() == [[90, 91], [92, 93]]


def test_each_sentence_is_reversed_by_its_own_length():
    x = torch.arange(8.0).reshape(2, 4, 1)
    assert reverse(x, torch.tensor([3, 4])).flatten().tolist() == [2, 1, 0, 3, 7, 6, 5, 4]


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_convolution_is_that_of_the_reference(activation):
    network = tiny.model().bilm.token_encoder.characters
    network.activate_ = getattr(torch, f"{activation}_")
    ids = torch.tensor([[256, 65, 260, 260, 260, 260, 260, 260, 260], [3] * 9])
    filters = [
        (layer.weight.detach().numpy().reshape(len(layer.weight), width, -1), layer.bias.detach())
        for width, layer in zip(network.widths, network.filters, strict=True)
    ]
    embedded = network.embedding.weight.detach().numpy()[ids]
    convolutions = [(weight.transpose(1, 2, 0), bias.numpy()) for weight, bias in filters]
    expected = [reference.convolve(each, convolutions, activation) for each in embedded]
    np.testing.assert_allclose(convolve(network, ids).detach(), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("settings", "lstm"),
    [
        ({}, {}),
        ({"num_representations": 2, "projection_dim": 3}, {"has_residuals": False}),
        ({"keeps_markers": True}, {"cell_clip": None, "output_clip": None}),
        ({"normalizes": True}, {"cell_clip": 0.2, "output_clip": 0.1}),
    ],
)
def test_an_exported_module_gives_the_same_vectors_for_any_batch(settings, lstm, tmp_path):
    model = tiny.model(tiny.byte_config(**lstm), scale=0.4)
    with torch.no_grad():
        model.bilm.initial_cell.normal_(generator=torch.Generator().manual_seed(1))
    elmo = Elmo(model, dropout=0.5, **settings).eval()
    batch, tokens = Dim("batch"), Dim("tokens")
    program = torch.export.export(
        elmo, (spell(model, SENTENCES),), dynamic_shapes=({0: batch, 1: tokens},)
    ).module()
    for sentences in (SENTENCES, OTHERS, [["A"]], [[], ["of"]]):
        ids = spell(model, sentences)
        found, expected = program(ids), elmo(ids)
        assert torch.equal(found.mask, expected.mask)
        assert len(found.representations) == len(elmo.mixes)
        for one, other in zip(found.representations, expected.representations, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_cannot_be_exported_is_one_sentence():
    model = tiny.model()
    ids = spell(model, SENTENCES)
    with pytest.raises(ElmoreError, match="carries no state"):
        torch.export.export(Elmo(model, state="stream"), (ids,))
    with pytest.raises(ElmoreError, match="needs padded character ids"):
        torch.export.export(Elmo(model.bilm), (ids,))
    with pytest.raises(ElmoreError, match="needs words"):
        torch.export.export(Elmo(tiny.model(tiny.word_and_char_config())), (ids,))


def test_ids_are_those_of_allennlp():
    config = tiny.byte_config()
    model = tiny.model(config)
    assert spell(model, [["A"]])[0, 0, :4].tolist() == batch_to_ids([["A"]])[0, 0, :4].tolist()

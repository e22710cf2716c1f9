"""An exported network computes the same vectors, in onnxruntime, for every architecture."""

import pytest

pytest.importorskip("onnx", reason="onnx is missing: pip install '.[onnx]'")

import numpy as np
import onnx
import torch

import elmore
from elmore.export.onnx import make_onnx
from elmore.weights.many_langs import read_many_langs
from tests import tiny
from tests.export.onnx import runs
from tests.weights import peer_files, test_bilm_tf, test_bilm_tf_words, test_many_langs
from tests.weights.peer_files import SENTENCES, largest_difference


def compute(model, sentences):
    return runs.run(runs.start(make_onnx(model)), model, sentences)


@pytest.mark.parametrize("options", test_bilm_tf.VARIANTS.values(), ids=test_bilm_tf.VARIANTS)
def test_models_of_bilm_tf_give_the_vectors_of_the_formulas(options, tmp_path):
    arrays = peer_files.make_arrays(options)
    model = test_bilm_tf.load_files(tmp_path, options, arrays)
    expected = test_bilm_tf.reference_layers(arrays, options, SENTENCES)
    assert largest_difference(compute(model, SENTENCES), expected) < 1e-5


@pytest.mark.parametrize(
    "architecture", test_many_langs.VARIANTS.values(), ids=test_many_langs.VARIANTS
)
def test_models_of_elmoformanylangs_give_the_vectors_of_the_formulas(architecture, tmp_path):
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(tmp_path, architecture, *weights)
    expected = test_many_langs.expect(architecture, *weights)
    found = compute(read_many_langs(tmp_path), test_many_langs.SENTENCES)
    assert largest_difference(found, expected) < 1e-5


def test_word_vectors_of_bilm_tf(tmp_path):
    options = peer_files.make_options()
    arrays, paths = test_bilm_tf_words.write_word_files(tmp_path, options=options)
    model = test_bilm_tf_words.load_words(paths)
    expected = test_bilm_tf_words.reference_word_layers(arrays, options, SENTENCES)
    assert largest_difference(compute(model, SENTENCES), expected) < 1e-5


@pytest.mark.parametrize("config", [tiny.byte_config(), tiny.word_and_char_config()])
def test_sentences_start_from_the_rest_state(config):
    model = tiny.model(config, scale=0.4)
    from_zeros = compute(model, SENTENCES)
    generator = torch.Generator().manual_seed(1)
    model.bilm.initial_hidden.normal_(generator=generator)
    model.bilm.initial_cell.normal_(generator=generator)
    found = compute(model, SENTENCES)
    expected = elmore.Embedder(model).embed(SENTENCES, layers="all")
    assert largest_difference(found, expected) < 1e-5
    assert largest_difference(found, from_zeros) > 1e-2


def test_one_session_reads_any_number_of_sentences_of_any_length():
    model = tiny.model(scale=0.4)
    session = runs.start(make_onnx(model))
    embedder = elmore.Embedder(model)
    for sentences in ([["a"]], [["a"] * 40, ["b", "c"]], [["d"]] * 9, [[]], [[], []]):
        expected = embedder.embed(sentences, layers="all")
        assert largest_difference(runs.run(session, model, sentences), expected) < 1e-5
    assert runs.run(session, model, []) == []


def test_padding_and_other_sentences_change_nothing():
    model = tiny.model(scale=0.4)
    session = runs.start(make_onnx(model))
    alone = [runs.run(session, model, [sentence])[0] for sentence in SENTENCES]
    for padding in (0, 7):
        together = runs.run(session, model, SENTENCES, padding=padding)
        assert largest_difference(together, alone) < 1e-6


def test_a_length_beyond_the_tokens_is_an_error():
    model = tiny.model()
    inputs = runs.make_inputs(model, [["a", "b"]])
    with pytest.raises(Exception, match=r"[Ss]equence"):
        runs.start(make_onnx(model)).run(["layers"], {**inputs, "lengths": np.array([5])})


def test_the_graph_is_valid_and_names_its_shapes():
    made = make_onnx(tiny.model(tiny.word_and_char_config()))
    onnx.checker.check_model(made, full_check=True)
    shapes = {
        entry.name: [dim.dim_param or dim.dim_value for dim in entry.type.tensor_type.shape.dim]
        for entry in (*made.graph.input, *made.graph.output)
    }
    assert shapes == {
        "char_ids": ["sentences", "tokens", 7],
        "word_ids": ["sentences", "tokens"],
        "lengths": ["sentences"],
        "layers": ["sentences", 3, "tokens", 10],
    }


def test_a_network_with_other_parts_is_refused():
    model = tiny.model()
    model.bilm.token_encoder.extra = torch.nn.Linear(2, 2)
    with pytest.raises(elmore.ElmoreError, match=r"'token_encoder.extra.bias' cannot be exported"):
        make_onnx(model)
    model = tiny.model()
    model.bilm.token_encoder.characters = torch.nn.Embedding(261, 9)
    with pytest.raises(elmore.ElmoreError, match=r"has no weight 'token_encoder.characters.emb"):
        make_onnx(model)

"""What users of other libraries type works, or fails with one clear sentence."""

import pickle
import re

import numpy as np
import pytest
import torch

import elmore
from elmore.read.engine import Engine
from tests.tiny import TRAINED_MODEL


@pytest.fixture(scope="module")
def embedder():
    return elmore.load(TRAINED_MODEL)


class Column:
    """Like a column of pandas: no Sequence, but it can be iterated and has `tolist`."""

    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def tolist(self):
        return list(self.values)


class DataFrame:
    """Like a table of pandas: iterating gives the names of its columns."""

    def __iter__(self):
        return iter(["text", "label"])


WORDS = ["The", "bank"]


@pytest.mark.parametrize(
    "sentences",
    [
        ["The bank"],
        [WORDS],
        (tuple(WORDS),),
        iter(["The bank"]),
        (sentence for sentence in [WORDS]),
        np.array(["The bank"]),
        np.array([WORDS]),
        [np.array(WORDS)],
        [np.array(WORDS, dtype=object)],
        Column(["The bank"]),
        [Column(WORDS)],
    ],
    ids=lambda sentences: re.sub(" at 0x[0-9a-f]+", "", repr(sentences)),
)
def test_every_kind_of_collection_gives_the_same_vectors(embedder, sentences):
    (found,) = embedder.embed(sentences)
    assert np.array_equal(found, embedder.embed("The bank"))


@pytest.mark.parametrize("sentences", [WORDS, tuple(WORDS), np.array(WORDS), Column(WORDS)])
def test_one_tokenized_sentence_gives_one_array(embedder, sentences):
    found = embedder.embed(sentences, tokenized=True)
    assert np.array_equal(found, embedder.embed("The bank"))


@pytest.mark.parametrize(("sentences", "shapes"), [([], []), (["", []], [(0, 48), (0, 48)])])
def test_nothing_gives_nothing(embedder, sentences, shapes):
    assert [vectors.shape for vectors in embedder.embed(sentences)] == shapes


@pytest.mark.parametrize(
    ("sentences", "complaint"),
    [
        (None, "got None where a list of sentences was expected"),
        (b"The bank", "got b'The bank' where a list"),
        ({"text": 1}, "got a dict where a list of sentences was expected; give a list, or one col"),
        ({"a", "b"}, "got a set where"),
        (DataFrame(), "got a DataFrame where a list of sentences was expected; give a list, or on"),
        (3, "got 3 where"),
        (["a", None], r"a sentence must be a string or a list of tokens, got NoneType \(None\)"),
        ([float("nan")], r"a list of tokens, got float \(nan\); convert it, or remove it"),
        ([b"a b"], r"got bytes \(b'a b'\); decode it first"),
        ([[["a"]]], "token 0 of a sentence must be a str, got list"),
        (np.array([1, 2]), "got int"),
    ],
)
@pytest.mark.parametrize("method", ["embed", "sentence_vectors", "score", "tokenize"])
def test_other_input_is_one_clear_sentence(embedder, method, sentences, complaint):
    with pytest.raises(elmore.ElmoreError, match=complaint):
        getattr(embedder, method)(sentences)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("normalize", r"divide the vectors by np\.linalg\.norm"),
        ("show_progress_bar", "use progress=True"),
        ("convert_to_tensor", 'use output="torch"'),
        ("device", r"use to\(device\)"),
        ("max_seq_length", "give max_sentence_tokens to elmore.load"),
        ("layer", "did you mean 'layers'"),
        ("nonsense", "it has: sentences, layers, tokenized"),
    ],
)
def test_arguments_of_other_libraries_are_explained(embedder, name, remedy):
    with pytest.raises(elmore.ElmoreError, match=f"embed has no argument '{name}'; .*{remedy}"):
        embedder.embed("The bank", **{name: 1})
    if remedy.startswith("it has"):
        return
    for method in (embedder.sentence_vectors, embedder.stream):
        with pytest.raises(elmore.ElmoreError, match=f"has no argument '{name}'; .*{remedy}"):
            method(["The bank"], **{name: 1})


SENTENCES = [["a"] * length for length in (3, 1, 0, 7, 2, 2, 9)]


@pytest.mark.parametrize(
    "limits",
    [
        {"batch_size": 1},
        {"batch_size": 3},
        {"tokens_per_batch": 1},
        {"tokens_per_batch": 9, "batch_size": 2},
        {"batch_size": 10**9, "tokens_per_batch": 10**9},
    ],
)
@pytest.mark.parametrize("state", ["reset", "document", "stream"])
def test_limits_of_a_batch_do_not_change_a_bit(limits, state):
    def load(**settings):
        return elmore.load(TRAINED_MODEL, state=state, **settings)

    wanted = load().embed(SENTENCES, layers="all")
    for found in (
        load().embed(SENTENCES, layers="all", **limits),
        load(**limits).embed(SENTENCES, layers="all"),
        pickle.loads(pickle.dumps(load(**limits))).embed(SENTENCES, layers="all"),
        list(load().stream(SENTENCES, layers="all", rows=len(SENTENCES), **limits)),
    ):
        assert all(map(np.array_equal, found, wanted))
    pooled = load().sentence_vectors(SENTENCES)
    assert np.array_equal(load().sentence_vectors(SENTENCES, **limits), pooled)


@pytest.mark.parametrize("where", ["call", "load"])
def test_a_batch_has_no_more_sentences_and_tokens_than_asked_for(where, monkeypatch):
    sizes = []
    run_batch = Engine._run_batch

    def note_size(engine, active, finish):
        sizes.append([len(sentence) + 2 for _, (_, sentence) in active])
        return run_batch(engine, active, finish)

    monkeypatch.setattr(Engine, "_run_batch", note_size)
    limits = {"batch_size": 2, "tokens_per_batch": 14}
    loaded = elmore.load(TRAINED_MODEL, **(limits if where == "load" else {}))
    loaded.embed(SENTENCES, **(limits if where == "call" else {}))
    assert sizes == [[11], [9, 5], [4, 4], [3]]
    sizes.clear()
    loaded.embed(SENTENCES)  # limits of one call are not those of the next
    assert len(sizes) == (4 if where == "load" else 1)


@pytest.mark.parametrize("name", ["batch_size", "tokens_per_batch"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "x", True])
def test_impossible_limits_are_named(embedder, name, value):
    for call in (embedder.embed, embedder.sentence_vectors):
        with pytest.raises(elmore.ElmoreError, match=f"{name} is .*; give a whole number"):
            call(["The bank"], **{name: value})
    with pytest.raises(elmore.ElmoreError, match=f"{name} is .*; give a whole number"):
        elmore.load(TRAINED_MODEL, **{name: value})


def test_sentence_vectors_are_tensors_if_asked_for(embedder, capsys):
    wanted = embedder.sentence_vectors(SENTENCES)
    found = embedder.sentence_vectors(SENTENCES, output="torch", progress=True)
    assert isinstance(found, torch.Tensor)
    assert np.array_equal(found.numpy(), wanted)
    assert "7/7" in capsys.readouterr().out
    assert embedder.sentence_vectors("The bank", output="torch").shape == (48,)


def test_a_file_is_embedded_with_a_progress_bar(embedder, tmp_path, capsys):
    elmore.embed_to_file(embedder, SENTENCES, tmp_path / "v.npz", progress=True)
    assert "7/?" in capsys.readouterr().out
    with pytest.raises(elmore.ElmoreError, match=r"no argument 'batch_size'; give it to elmore\.l"):
        elmore.embed_to_file(embedder, SENTENCES, tmp_path / "w.npz", batch_size=3)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("encode", "use embed"),
        ("save_pretrained", "use save"),
        ("cuda", "use to"),
        ("half", 'precision="bf16"'),
        ("dim", "use vector_dim"),
        ("get_sentence_embedding_dimension", "use vector_dim"),
        ("similarity", 'pool="similarity"'),
        ("other", ""),
    ],
)
def test_methods_of_other_libraries_are_explained(embedder, name, remedy):
    with pytest.raises(AttributeError, match=f"an Embedder has no '{name}'.*{remedy}"):
        getattr(embedder, name)
    assert not hasattr(embedder, name)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("requires_grad", "use trains_bilm="),
        ("num_output_representations", "use num_representations="),
        ("num_representation", "did you mean 'num_representations'"),
    ],
)
def test_arguments_of_other_modules_are_explained(embedder, name, remedy):
    with pytest.raises(elmore.ElmoreError, match=f"^Elmo has no argument '{name}'; {remedy}"):
        elmore.Elmo(embedder, **{name: 1})
    with pytest.raises(elmore.ElmoreError, match=r"^Elmo: missing a required argument: 'model'"):
        elmore.Elmo()


def test_class_methods_of_other_libraries_are_explained():
    with pytest.raises(
        AttributeError, match=r"an Embedder has no 'from_pretrained'; use elmore\.l"
    ):
        elmore.Embedder.from_pretrained("path")
    with pytest.raises(AttributeError, match=r"an Embedder has no 'other'$"):
        elmore.Embedder.other  # noqa: B018


@pytest.mark.parametrize("model", ["path", None, 3])
def test_an_embedder_of_anything_but_a_model_is_refused(model):
    with pytest.raises(elmore.ElmoreError, match=r"where a model was expected; .* elmore\.load"):
        elmore.Embedder(model)


def test_a_device_that_is_missing_is_named():
    with pytest.raises(elmore.ElmoreError, match="cannot compute on device 'abacus'"):
        elmore.load(TRAINED_MODEL, device="abacus")
    assert str(elmore.load(TRAINED_MODEL).to("cpu").device) == "cpu"


def test_a_saved_embedder_loads_with_the_same_vectors(embedder, tmp_path):
    embedder.save(tmp_path / "model")
    again = elmore.load(tmp_path / "model")
    assert np.array_equal(again.embed("The bank"), embedder.embed("The bank"))


def test_a_language_model_splits_strings_into_tokens():
    model = elmore.LanguageModel.load(TRAINED_MODEL)
    (of_string,) = model.score(["the bank"])
    (of_tokens,) = model.score([["the", "bank"]])
    assert of_string == of_tokens
    assert model.fill("the ___ of", top=2) == model.fill(["the", "___", "of"], top=2)
    with pytest.raises(elmore.ElmoreError, match="got 'the bank' where a list of sentences"):
        model.score("the bank")


def test_a_file_is_embedded_by_the_path_of_a_model(tmp_path, embedder):
    elmore.embed_to_file(str(TRAINED_MODEL), ["The bank"], tmp_path / "v.npz")
    (found,) = elmore.read_vectors(tmp_path / "v.npz")
    assert np.array_equal(found.vectors, embedder.embed("The bank"))

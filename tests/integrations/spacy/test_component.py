"""The component `elmore`: spaCy's tokens in, the embedder's vectors out."""

import pickle

import numpy as np
import pytest

import elmore
from tests import tiny
from tests.tiny import TRAINED_MODEL

pytest.importorskip("spacy", reason="spaCy is not installed: pip install '.[spacy]'")

import spacy
from spacy.tokens import Doc

from elmore.integrations.spacy import DocEmbedder
from elmore.integrations.spacy.hooks import add_hooks

TEXT = "The bank raised its rates.\n\n  He sat on the bank of the river. "


@pytest.fixture(scope="module")
def embedder():
    return elmore.load(TRAINED_MODEL)


def make_pipeline(*before, **config):
    nlp = spacy.blank("en")
    for name in before:
        nlp.add_pipe(name)
    nlp.add_pipe("elmore", config={"model": str(TRAINED_MODEL), **config})
    return nlp


@pytest.fixture(scope="module")
def nlp():
    return make_pipeline()


@pytest.mark.parametrize("layers", ["average", "top", 0])
@pytest.mark.parametrize("keep_layers", [True, False])
def test_a_doc_is_one_sentence_of_spacys_tokens(embedder, layers, keep_layers):
    doc = make_pipeline(layers=layers, keep_layers=keep_layers)(TEXT)
    tokens = [token.text for token in doc]
    assert "\n\n  " in tokens  # spaCy has whitespace tokens
    expected = embedder.embed([tokens], layers=layers)[0]
    assert np.array_equal(doc.tensor, expected)
    assert doc.tensor.dtype == np.float32
    if keep_layers:
        assert np.array_equal(doc._.elmore, embedder.embed([tokens], layers="all")[0])
    else:
        assert doc._.elmore is None


def test_sentences_are_read_alone_if_their_boundaries_are_set(embedder):
    doc = make_pipeline("sentencizer")(TEXT)
    sentences = [[token.text for token in span] for span in doc.sents]
    assert len(sentences) == 2
    assert np.array_equal(doc.tensor, np.concatenate(embedder.embed(sentences)))
    assert doc._.elmore.shape == (embedder.num_layers, len(doc), embedder.vector_dim)


def test_docs_spans_and_tokens_have_vectors(nlp):
    doc = nlp(TEXT)
    assert np.array_equal(doc[1].vector, doc.tensor[1])
    assert np.array_equal(doc[1:4].vector, doc.tensor[1:4].mean(axis=0))
    assert np.array_equal(doc.vector, doc.tensor.mean(axis=0))
    for item in (doc, doc[1], doc[1:4]):
        assert item.has_vector
        assert item.vector_norm == pytest.approx(np.linalg.norm(item.vector), rel=1e-6)
    assert not doc[2:2].vector.any()


def test_similarity_is_the_cosine(nlp):
    doc, other = nlp("The bank raised its rates."), nlp("A bank.")
    for one, two in ((doc, other), (doc[1], other[1]), (doc[0:2], other), (doc[1], other[0:2])):
        cosine = one.vector @ two.vector / np.linalg.norm(one.vector) / np.linalg.norm(two.vector)
        assert one.similarity(two) == pytest.approx(cosine, rel=1e-5)
    assert doc[1].similarity(other[1]) < 0.9999  # the same word in another sentence
    assert doc.similarity(doc) == pytest.approx(1)
    assert nlp("").similarity(doc) == 0


def test_vectors_of_the_vocabulary_do_not_matter(nlp):
    with_vectors = make_pipeline()
    with_vectors.vocab.set_vector("bank", np.ones(3, np.float32))
    doc = with_vectors("The bank.")
    assert np.array_equal(doc[1].vector, nlp("The bank.")[1].vector)


def test_a_stream_is_embedded_in_batches(nlp, monkeypatch):
    texts = ["A bank.", "", " ", "The river rose.", TEXT]
    calls = []
    embed = elmore.Embedder.embed
    monkeypatch.setattr(
        elmore.Embedder,
        "embed",
        lambda self, sentences, **how: (
            calls.append(len(sentences)) or embed(self, sentences, **how)
        ),
    )
    docs = list(nlp.pipe(texts, batch_size=3))
    assert calls == [2, 2]  # the empty doc has no sentence
    for text, doc in zip(texts, docs, strict=True):
        assert np.array_equal(doc.tensor, nlp(text).tensor)
        assert doc.tensor.shape[0] == len(doc)


def test_empty_docs(nlp, embedder):
    doc = nlp("")
    assert doc.tensor.shape == (0, embedder.vector_dim)
    assert doc._.elmore.shape == (embedder.num_layers, 0, embedder.vector_dim)
    assert not doc.vector.any()


@pytest.mark.slow
@pytest.mark.parametrize("is_shipped", [True, False])
def test_a_pipeline_is_saved_with_its_model(tmp_path, is_shipped):
    if is_shipped:  # the default model, here the tests' own
        source = None
    else:
        source = str(tmp_path / "model")
        tiny.model().save_pretrained(source)
    nlp = make_pipeline(model=source, layers=1)
    expected = nlp(TEXT).tensor
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    if not is_shipped:
        (tmp_path / "model").rename(tmp_path / "elsewhere")
    loaded = spacy.load(tmp_path / "pipeline")
    assert np.array_equal(loaded(TEXT).tensor, expected)
    from_bytes = spacy.blank("en")
    from_bytes.add_pipe("elmore", config={"model": source, "layers": 1})
    from_bytes.from_bytes(data)
    assert np.array_equal(from_bytes(TEXT).tensor, expected)
    again = from_bytes.to_bytes()  # the model's files are gone, its weights are not
    assert np.array_equal(from_bytes.from_bytes(again)(TEXT).tensor, expected)
    weights = tmp_path / "pipeline" / "elmore" / "model.safetensors"
    assert weights.exists() != is_shipped


def test_another_english_model_is_refused(tmp_path):
    nlp = make_pipeline(model=None)
    nlp.to_disk(tmp_path)
    (tmp_path / "elmore" / "fingerprint.txt").write_text("0" * 64)
    with pytest.raises(elmore.ElmoreError, match="saved with another English model"):
        spacy.load(tmp_path)


def test_damaged_files_of_a_saved_pipeline_are_named(tmp_path):
    nlp = make_pipeline(model=str(TRAINED_MODEL))
    nlp.to_disk(tmp_path)
    (tmp_path / "elmore" / "model.safetensors").write_bytes(b"x")
    with pytest.raises(elmore.ElmoreError, match=r"^the saved model\.safetensors is not a comp"):
        spacy.load(tmp_path)
    (tmp_path / "elmore" / "fingerprint.txt").unlink()
    with pytest.raises(elmore.ElmoreError, match=r"fingerprint\.txt is missing"):
        spacy.load(tmp_path)


def test_tensors_and_layers_are_saved_with_docs(nlp):
    doc = nlp(TEXT)
    with pytest.warns(UserWarning, match="W109"):
        data = doc.to_bytes()
    again = Doc(nlp.vocab).from_bytes(data)
    assert np.array_equal(again.tensor, doc.tensor)
    assert np.array_equal(again._.elmore, doc._.elmore)
    add_hooks(again)
    assert np.array_equal(again[2:4].vector, doc[2:4].vector)
    assert np.array_equal(pickle.loads(pickle.dumps(doc))[1].vector, doc[1].vector)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:\\[W109\\]")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_two_processes_give_the_same_vectors(nlp):
    texts = ["A bank.", "The river rose."] * 3
    found = list(nlp.pipe(texts, n_process=2, batch_size=2))
    for text, doc in zip(texts, found, strict=True):
        assert np.array_equal(doc.tensor, nlp(text).tensor)


def test_a_long_doc_without_sentences_is_refused():
    nlp = make_pipeline(max_sentence_tokens=5)
    with pytest.raises(elmore.ElmoreError, match=r"7 tokens.*'sentencizer'"):
        nlp("One two three four five six.")
    nlp.add_pipe("sentencizer", first=True)
    assert len(nlp("One two three. Four five six.").tensor) == 8


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"layers": "all"}, "a token of spaCy has one vector"),
        ({"layers": "0,1"}, "a token of spaCy has one vector"),
        ({"layers": 7}, "layers is 7"),
        ({"model": "/no/such/model"}, "/no/such/model"),
        ({"precision": "f8"}, "precision is 'f8'"),
    ],
    ids=repr,
)
def test_a_wrong_setting_is_one_sentence(config, message):
    with pytest.raises(elmore.ElmoreError, match=message):
        make_pipeline(**config)("A bank.")


def test_the_analysis_of_a_pipeline_knows_what_the_component_sets(nlp):
    assigned = nlp.analyze_pipes()["summary"]["elmore"]["assigns"]
    assert {"doc.tensor", "doc._.elmore", "token.vector"} <= set(assigned)
    assert isinstance(nlp.get_pipe("elmore"), DocEmbedder)

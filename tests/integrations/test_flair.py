"""ElmoreEmbeddings in Flair: Embedder's vectors, a tagger that trains, saving and loading."""

import numpy as np
import pytest
import torch

import elmore
from tests import tiny

flair = pytest.importorskip("flair", reason="run make test-integrations, which installs it")

from flair.data import Sentence  # noqa: E402
from flair.datasets import ColumnCorpus  # noqa: E402
from flair.embeddings import StackedEmbeddings  # noqa: E402
from flair.models import SequenceTagger  # noqa: E402
from flair.trainers import ModelTrainer  # noqa: E402

from elmore.integrations.flair import ElmoreEmbeddings  # noqa: E402
from elmore.weights.bilm_tf import write_bilm_tf  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

TOKENS = [["The", "bank", "of", "the", "river", "."], ["Rates", "rose"]]


def embed(embeddings, sentences=TOKENS):
    """Return one array per sentence."""
    made = [Sentence(tokens) for tokens in sentences]
    embeddings.embed(made)
    return [np.stack([token.embedding.numpy() for token in sentence]) for sentence in made]


@pytest.mark.parametrize("mode", ["all", "top", "average", 1])
def test_vectors_are_those_of_the_embedder(mode):
    expected = elmore.load().embed(TOKENS, layers=mode)
    if mode == "all":
        expected = [np.concatenate(list(layers), axis=-1) for layers in expected]
    embeddings = ElmoreEmbeddings(embedding_mode=mode)
    for vectors, others in zip(embed(embeddings), expected, strict=True):
        assert np.array_equal(vectors, others)
        assert vectors.shape[1] == embeddings.embedding_length


def test_files_of_a_published_model_are_given_as_before(tmp_path):
    config = tiny.byte_config()
    write_bilm_tf(tiny.model(config), tmp_path / "weights.hdf5")
    options = (tmp_path / "options.json").rename(tmp_path / "elmo_options.json")
    embeddings = ElmoreEmbeddings(
        options_file=str(options), weight_file=str(tmp_path / "weights.hdf5"), embedding_mode="top"
    )
    expected = elmore.load(tmp_path / "weights.hdf5", options=options).embed(TOKENS, layers="top")
    assert np.array_equal(embed(embeddings)[0], expected[0])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    sentence = "Ann B-PER\nlives O\nin O\nRome B-LOC\n\nThe O\nbank O\nrose O\n\n"
    for part in ("train", "dev", "test"):
        (folder / f"{part}.txt").write_text(sentence * 20)
    return ColumnCorpus(
        str(folder), {0: "text", 1: "ner"}, train_file="train.txt", dev_file="dev.txt",
        test_file="test.txt",
    )  # fmt: skip


@pytest.mark.parametrize("is_shipped", [True, False])
@pytest.mark.parametrize("is_stacked", [True, False])
def test_a_tagger_learns_and_is_saved_and_loaded(corpus, tmp_path, is_shipped, is_stacked):
    torch.manual_seed(0)
    if not is_shipped:
        elmore.load_model().save_pretrained(tmp_path / "model")
    embeddings = ElmoreEmbeddings(None if is_shipped else tmp_path / "model")
    tagger = SequenceTagger(
        embeddings=StackedEmbeddings([embeddings]) if is_stacked else embeddings,
        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        hidden_size=16,
        use_crf=True,
    )
    trainer = ModelTrainer(tagger, corpus)
    trainer.train(tmp_path / "run", learning_rate=0.1, mini_batch_size=4, max_epochs=4)
    assert trainer.model.evaluate(corpus.test, gold_label_type="ner").main_score == 1.0
    if not is_shipped:  # the saved tagger does not need it
        (tmp_path / "model").rename(tmp_path / "elsewhere")
    loaded = SequenceTagger.load(tmp_path / "run" / "final-model.pt")
    sentence = Sentence("Ann lives in Rome")
    loaded.predict(sentence)
    found = [(label.data_point.text, label.value) for label in sentence.get_labels("ner")]
    assert found == [("Ann", "PER"), ("Rome", "LOC")]
    name = embeddings.name
    expected = embed(embeddings, [["Ann", "lives", "in", "Rome"]])[0]
    fresh = Sentence("Ann lives in Rome")
    loaded.embeddings.embed(fresh)
    assert np.array_equal(fresh[3].get_embedding([name]).numpy(), expected[3])


def test_mistakes_are_one_sentence(tmp_path):
    with pytest.raises(elmore.ElmoreError, match="layers is 'middle'"):
        ElmoreEmbeddings(embedding_mode="middle")
    with pytest.raises(elmore.ElmoreError, match="give one of them"):
        ElmoreEmbeddings("model", weight_file="weights.hdf5")
    with pytest.raises(elmore.ElmoreError, match=r"does not download 'original'|no model at"):
        ElmoreEmbeddings("original")

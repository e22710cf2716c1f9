"""ElmoreTokens in sentence-transformers: Embedder's vectors, training, saving and loading."""

import json
import pickle
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import elmore
from tests import tiny

if find_spec("sentence_transformers") is None:
    pytest.skip("needs elmore[sentence-transformers]", allow_module_level=True)


MODULES = (
    "elmore.integrations.sentence_transformers",
    "sentence_transformers",
    "sentence_transformers.sentence_transformer.modules",
    "sentence_transformers.sentence_transformer.losses",
    "datasets",
)


def tool(name):
    """Return a class or function, importing it by the first test, since that takes seconds."""
    return next(
        getattr(import_module(module), name)
        for module in MODULES
        if hasattr(import_module(module), name)
    )


pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # about pinned memory
]

TEXTS = ["The bank of the river.", "Rates rose.", "", "She didn't know the bank, he said."]


def make_model(**settings):
    torch.manual_seed(0)
    tokens = tool("ElmoreTokens")(**settings)
    pooling = tool("Pooling")(tokens.get_embedding_dimension(), "mean")
    return tool("SentenceTransformer")(modules=[tokens, pooling])


@pytest.mark.parametrize(
    "sentences",
    [[["a", "bc"], [], ["\0", "x\0", "我"]], [[], []], [["\U0001f600" * 3, "\ud800"]]],
)
def test_tokens_travel_as_numbers_and_come_back(sentences):
    ids, mask = tool("spell_padded")(sentences)
    assert mask.sum(axis=1).tolist() == [len(sentence) for sentence in sentences]
    assert mask.shape == ids.shape[:2]
    assert tool("read_padded")(ids) == sentences


def test_vectors_are_those_of_the_embedder():
    model, embedder = make_model(), elmore.load()
    mix = elmore.ScalarMix(num_layers=embedder.num_layers)
    found = model.encode(TEXTS, output_value="token_embeddings", batch_size=2)
    for vectors, expected in zip(found, embedder.embed(TEXTS, layers=mix), strict=True):
        if len(expected):
            assert np.array_equal(vectors.numpy(), expected)
        else:
            assert not vectors.any()
    pooled = embedder.sentence_vectors(TEXTS)
    np.testing.assert_allclose(model.encode(TEXTS), pooled, atol=1e-6)
    assert model.get_embedding_dimension() == embedder.vector_dim


def test_a_trained_bilm_starts_with_the_same_vectors():
    frozen, trained = make_model(), make_model(trains_bilm=True)
    np.testing.assert_allclose(trained.encode(TEXTS), frozen.encode(TEXTS), atol=1e-5)


def train(model, loss, tmp_path, **columns):
    rows = tool("Dataset").from_dict(columns)
    arguments = tool("SentenceTransformerTrainingArguments")(
        output_dir=str(tmp_path / "run"),
        max_steps=4,
        per_device_train_batch_size=4,
        learning_rate=0.1,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    tool("SentenceTransformerTrainer")(
        model=model, args=arguments, train_dataset=rows, loss=loss
    ).train()
    return {
        name for name, weight in model.state_dict().items() if not torch.equal(weight, before[name])
    }


ANCHORS = ["The bank rose.", "A river.", "Rates fell.", "The boat sank."]
OTHERS = ["Banks rose again.", "Rivers.", "The rates fell far.", "Boats sink."]


@pytest.mark.parametrize("trains_bilm", [False, True])
@pytest.mark.parametrize("loss", ["MultipleNegativesRankingLoss", "CosineSimilarityLoss"])
def test_training_changes_the_mix_and_the_bilm_if_asked(loss, trains_bilm, tmp_path):
    model = make_model(trains_bilm=trains_bilm)
    columns = {"anchor": ANCHORS, "positive": OTHERS}
    if loss == "CosineSimilarityLoss":
        columns["score"] = [1.0, 0.5, 0.2, 0.0]
    changed = train(model, tool(loss)(model), tmp_path, **columns)
    expected = {"0.mix.weights"} | ({"0.mix.scale"} & changed)  # cosines ignore the scale
    if trains_bilm:
        assert any("forward_lm" in name for name in changed)
        assert any("token_encoder" in name for name in changed)
    else:
        assert changed == expected


def test_a_loss_that_cuts_batches_works(tmp_path):
    model = make_model()
    loss = tool("CachedMultipleNegativesRankingLoss")(model, mini_batch_size=2)
    assert "0.mix.weights" in train(model, loss, tmp_path, anchor=ANCHORS, positive=OTHERS)


@pytest.mark.parametrize("trains_bilm", [False, True])
def test_a_saved_model_loads_with_every_bit(trains_bilm, tmp_path):
    model = make_model(trains_bilm=trains_bilm, dropout=0.25, language="zh-chars")
    with torch.no_grad():
        model[0].mix.weights += torch.tensor([0.5, -1.0, 2.0])
        model[0].mix.scale.fill_(1.5)
        for weight in model[0].parameters():
            weight.add_(0.01)
    model.save_pretrained(str(tmp_path / "saved"))
    loaded = tool("SentenceTransformer")(str(tmp_path / "saved"), trust_remote_code=True)
    assert loaded[0].get_config_dict() == model[0].get_config_dict()
    assert loaded[0].dropout == 0.25
    assert np.array_equal(loaded.encode(TEXTS), model.encode(TEXTS))
    settings = json.loads((tmp_path / "saved" / "0_ElmoreTokens" / "config.json").read_text())
    assert settings["trains_bilm"] == trains_bilm
    # The biLM is an ordinary model folder.
    assert elmore.load(tmp_path / "saved" / "0_ElmoreTokens" / "bilm").num_layers == 3


def test_the_words_of_another_model(tmp_path):
    """A model with word vectors, as those of ELMoForManyLangs, works too."""
    tiny.model(tiny.word_and_char_config()).save_pretrained(tmp_path / "model")
    model = make_model(model=tmp_path / "model")
    embedder = elmore.load(tmp_path / "model")
    expected = embedder.sentence_vectors(["a bad cafe"])
    np.testing.assert_allclose(model.encode(["a bad cafe"]), expected, atol=1e-6)


def test_a_limit_and_a_prompt():
    model, embedder = make_model(max_seq_length=2), elmore.load()
    found = model.encode(["The bank of the river."])
    np.testing.assert_allclose(found, embedder.sentence_vectors([["The", "bank"]]), atol=1e-6)
    model.max_seq_length = None
    found = model.encode(["the river."], prompt="The bank of ")
    np.testing.assert_allclose(found, embedder.sentence_vectors(TEXTS[:1]), atol=1e-6)
    tokens = model[0]
    without_prompt = tool("SentenceTransformer")(
        modules=[
            tokens,
            tool("Pooling")(tokens.get_embedding_dimension(), "mean", include_prompt=False),
        ]
    )
    found = without_prompt.encode(["the river."], prompt="The bank of ")
    expected = embedder.embed(TEXTS[0])[3:].mean(axis=0)
    np.testing.assert_allclose(found[0], expected, atol=1e-6)


def test_a_model_can_be_sent_to_another_process():
    model = make_model()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.encode(TEXTS), model.encode(TEXTS))


def test_mistakes_are_one_sentence():
    with pytest.raises(elmore.ElmoreError, match="language is 'xx'"):
        tool("ElmoreTokens")(language="xx")
    with pytest.raises(elmore.ElmoreError, match=r"got \('a', 'b'\) where a text was expected"):
        make_model().encode([("a", "b")])

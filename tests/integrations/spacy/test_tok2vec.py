"""`elmore.Tok2Vec.v1`: a trained mix of frozen layers inside spaCy's components."""

import json
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

import elmore
from tests import tiny
from tests.tiny import TRAINED_MODEL

pytest.importorskip("spacy", reason="spaCy is not installed: pip install '.[spacy]'")

import spacy
from spacy import registry
from spacy.cli.evaluate import evaluate
from spacy.cli.init_config import fill_config
from spacy.cli.package import package
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from elmore.integrations.spacy import make_tok2vec

SENTENCES = [["Ann", "lives", "in", "Rome"], ["Rome", "fell"], ["Ann", "saw", "Bob", "."]]
NAMES = {"Ann": "PER", "Bob": "PER", "Rome": "LOC"}
TAGS = {"Ann": "N", "Bob": "N", "Rome": "N", "in": "P", ".": "."}
CONFIG = """
[paths]
train = null
dev = null
[nlp]
lang = "en"
pipeline = ["tok2vec", "ner", "tagger"]
[components]
[components.tok2vec]
factory = "tok2vec"
[components.tok2vec.model]
@architectures = "elmore.Tok2Vec.v1"
model = {model}
width = 16
[components.ner]
factory = "ner"
[components.ner.model]
@architectures = "spacy.TransitionBasedParser.v2"
state_type = "ner"
extra_state_tokens = false
hidden_width = 16
maxout_pieces = 2
use_upper = true
[components.ner.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 16
[components.tagger]
factory = "tagger"
[components.tagger.model]
@architectures = "spacy.Tagger.v2"
[components.tagger.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 16
[corpora]
[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${{paths.train}}
[corpora.dev]
@readers = "spacy.Corpus.v1"
path = ${{paths.dev}}
[training]
max_epochs = 120
eval_frequency = 20
[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.01
[training.logger]
@loggers = "spacy.ConsoleLogger.v1"
"""


@pytest.fixture
def docs():
    vocab = spacy.blank("en").vocab
    return [Doc(vocab, words=words) for words in [*SENTENCES, []]]


def make_mix(**settings):
    model = make_tok2vec(model=str(TRAINED_MODEL), **settings)
    model.initialize()
    return model


def test_an_untrained_mix_is_the_average(docs):
    found = make_mix().predict(docs)
    expected = elmore.load(TRAINED_MODEL).embed([*SENTENCES, []])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
        assert one.dtype == np.float32


def test_gradients_are_those_of_the_scalar_mix(docs):
    model = make_mix()
    weights, scale = np.array([0.3, -1.0, 0.5], np.float32), np.array([1.7], np.float32)
    model.set_param("weights", weights)
    model.set_param("scale", scale)
    mix = elmore.ScalarMix(num_layers=3, initial_logits=weights.tolist())
    with torch.no_grad():
        mix.scale.fill_(1.7)
    layers = elmore.load(TRAINED_MODEL).embed([*SENTENCES, []], layers="all", output="torch")
    expected = [mix(array) for array in layers]
    generator = torch.Generator().manual_seed(0)
    gradients = [torch.randn(array.shape, generator=generator) for array in expected]
    torch.cat(expected).backward(torch.cat(gradients))
    found, backprop = model.begin_update(docs)
    assert backprop([gradient.numpy() for gradient in gradients]) == []
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(model.get_grad("weights"), mix.weights.grad, rtol=1e-4)
    np.testing.assert_allclose(model.get_grad("scale"), [mix.scale.grad], rtol=1e-4)


def test_layers_are_computed_once_per_doc_while_training(docs):
    model = make_mix()
    store = model.attrs["layers"]
    first = model.predict(docs)
    assert store.num_computed == 4
    again = model.predict([doc.copy() for doc in reversed(docs)])
    assert store.num_computed == 4
    assert all(map(np.array_equal, first, reversed(again)))


def test_the_cache_is_bounded_and_off_after_training(docs):
    model = make_mix(cache_mb=0)
    model.predict(docs)
    store = model.attrs["layers"]
    assert (store.num_bytes, store.num_computed) == (0, 4)
    model.predict(docs)
    assert store.num_computed == 7  # the empty doc needs no memory
    data = make_mix().to_bytes()
    loaded = make_tok2vec(model=str(TRAINED_MODEL)).from_bytes(data)
    loaded.predict(docs)
    assert loaded.attrs["layers"].num_bytes == 0


def test_a_width_adds_a_trained_projection(docs):
    model = make_tok2vec(model=str(TRAINED_MODEL), width=7)
    model.initialize(X=docs)
    assert model.get_dim("nO") == 7
    found, backprop = model.begin_update(docs)
    assert [array.shape for array in found] == [(len(doc), 7) for doc in docs]
    backprop([np.ones_like(array) for array in found])
    assert model.layers[0].get_grad("weights").any()


def test_a_mix_is_saved_with_its_model(tmp_path, docs):
    source = tmp_path / "model"
    tiny.model().save_pretrained(source)
    model = make_tok2vec(model=str(source))
    model.initialize()
    model.set_param("weights", np.array([3, 0, 1], np.float32))
    expected = model.predict(docs)
    model.to_disk(tmp_path / "mix")
    source.rename(tmp_path / "elsewhere")
    loaded = make_tok2vec(model=str(source)).from_disk(tmp_path / "mix")
    assert all(map(np.array_equal, loaded.predict(docs), expected))


def write_docs(path: Path, times: int) -> None:
    vocab = spacy.blank("en").vocab
    stored = DocBin()
    for words in SENTENCES * times:
        doc = Doc(vocab, words=words, tags=[TAGS.get(word, "V") for word in words])
        doc.ents = [
            Span(doc, number, number + 1, label=NAMES[word])
            for number, word in enumerate(words)
            if word in NAMES
        ]
        stored.add(doc)
    stored.to_disk(path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
# `spacy package` leaves a file open.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_entities_and_tags_are_trained_evaluated_and_packaged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny.model().save_pretrained("model")
    Path("config.cfg").write_text(CONFIG.format(model='"model"'))
    for part, times in (("train", 4), ("dev", 1)):
        write_docs(Path(f"{part}.spacy"), times)
    fill_config(Path("full.cfg"), Path("config.cfg"))
    paths = {"paths.train": "train.spacy", "paths.dev": "dev.spacy"}
    train(Path("full.cfg"), Path("out"), overrides=paths)
    Path("model").rename("elsewhere")
    scores = evaluate("out/model-best", Path("dev.spacy"))
    assert scores["ents_f"] == scores["tag_acc"] == 1.0
    nlp = spacy.load("out/model-best")
    mix = nlp.get_pipe("tok2vec").model.layers[0]
    assert mix.get_param("weights").any()  # they started at 0
    weights = elmore.load_model("elsewhere").state_dict()
    frozen = mix.attrs["layers"].model.embedder.model.state_dict()
    assert all(torch.equal(weights[name], frozen[name]) for name in weights)
    Path("packages").mkdir()
    package(Path("out/model-best"), Path("packages"), name="with_elmore", create_sdist=False)
    (meta,) = Path("packages").glob("*/meta.json")
    assert any(name.startswith("elmore") for name in json.loads(meta.read_text())["requirements"])
    packaged = next(Path("packages").glob("*/*/*/config.cfg")).parent
    doc = Doc(nlp.vocab, words=SENTENCES[0])
    assert [ent.text for ent in spacy.load(packaged)(doc).ents] == ["Ann", "Rome"]


@pytest.mark.parametrize("name", ["tagger", "ner"])
def test_a_component_may_have_a_mix_of_its_own(name):
    nlp = spacy.blank("en")
    own = {"@architectures": "elmore.Tok2Vec.v1", "model": str(TRAINED_MODEL)}
    nlp.add_pipe(name, config={"model": {"tok2vec": own}})
    doc = Doc(nlp.vocab, words=SENTENCES[0])
    gold = {"tags": ["N", "V", "P", "N"], "entities": [(0, 3, "PER")]}
    example = Example.from_dict(doc, gold)
    optimizer = nlp.initialize(lambda: [example])
    for _ in range(2):
        losses = nlp.update([example], sgd=optimizer)
    assert losses[name] > 0
    (mix,) = [n for n in nlp.get_pipe(name).model.walk() if n.name == "elmore_mix"]
    assert mix.get_param("weights").any()


def test_entry_points_name_what_spacy_asks_for():
    settings = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    points = settings["project"]["entry-points"]
    for group, table in points.items():
        for name, place in table.items():
            module, _, attribute = place.partition(":")
            found = getattr(import_module(module), attribute)
            if group == "spacy_architectures":
                assert registry.architectures.get(name) is found
            if group == "spacy_factories":
                assert spacy.Language.has_factory(name)


def test_other_vectors_stand_beside_those_of_elmo(docs):
    """`[x; ELMo]`: both reach the trained layer, and both get gradients."""
    embed = registry.architectures.get("spacy.MultiHashEmbed.v2")(
        width=4, attrs=["NORM"], rows=[50], include_static_vectors=False
    )
    model = make_tok2vec(model=str(TRAINED_MODEL), width=6, embed=embed)
    model.initialize(docs)
    found, backprop = model.begin_update(docs)
    assert [array.shape for array in found] == [(len(doc), 6) for doc in docs]
    width = elmore.load(TRAINED_MODEL).vector_dim + 4
    maxout = next(node for node in model.walk() if node.name == "maxout")
    assert maxout.get_dim("nI") == width
    backprop([np.ones_like(array) for array in found])
    for name, node in (("weights", "elmore_mix"), ("E", "hashembed")):
        (part,) = [each for each in model.walk() if each.name == node]
        assert part.get_grad(name).any()


def test_other_vectors_need_a_width():
    embed = registry.architectures.get("spacy.HashEmbedCNN.v2")(
        width=4, depth=1, embed_size=50, window_size=1, maxout_pieces=2, subword_features=True,
        pretrained_vectors=False,
    )  # fmt: skip
    with pytest.raises(elmore.ElmoreError, match="embed but no width"):
        make_tok2vec(embed=embed)

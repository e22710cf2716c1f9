"""ELMo vectors in training: where they go, what stays frozen, and what learns with the task."""

import pytest
import torch

from elmore.embed.embedder import Embedder
from elmore.embed.layer_source import LiveLayers
from elmore.tasks.data.parts import find_parts
from elmore.tasks.fit.data import read_data
from elmore.tasks.fit.folder import load_task_model
from elmore.tasks.fit.model import TaskModel, find_words, make_task
from elmore.weights.loading import load_model
from tests.tasks.fit.made_up import Place, Watcher, make_settings

SHORT = "training.max_epochs=1"
PLAIN_DIM, LAYER_DIM = 4 + 3, 10


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("elmo"))


def build(place, *changes):
    """An untrained network that reads a biLM's layers as they are computed."""
    settings = make_settings(*changes)
    data = read_data(make_task(settings), find_parts(place.data))
    torch.manual_seed(0)
    words = find_words(settings, [example.tokens for example in data.train])
    labels = make_task(settings).find_labels(data.train)
    layers = LiveLayers(Embedder(load_model(place.model)), "f32")
    return TaskModel(settings, labels=labels, words=words, layers=layers), list(data.train)


@pytest.mark.parametrize(
    ("where", "input_dim", "above_dim", "mixes"),
    [
        ("none", PLAIN_DIM, 0, []),
        ("input", PLAIN_DIM + LAYER_DIM, 0, ["below"]),
        ("output", PLAIN_DIM, LAYER_DIM, ["above"]),
        ("both", PLAIN_DIM + LAYER_DIM, LAYER_DIM, ["below", "above"]),
    ],
)
def test_vectors_go_where_settings_say(place, where, input_dim, above_dim, mixes):
    model, examples = build(place, f"elmo.where={where}")
    assert (model.tokens.input_dim, model.tokens.above_dim) == (input_dim, above_dim)
    assert list(model.mixes) == mixes
    model.loss(examples[:4]).backward()
    for mix in model.mixes.values():
        assert mix.mix.weights.grad.abs().min() > 0
        assert mix.mix.scale.grad != 0


@pytest.mark.parametrize("use", ["top", "average"])
def test_without_a_mix_only_the_scale_is_learned(place, use):
    report = place.fit(use, "elmo.where=both", f"elmo.layers={use}", SHORT)
    shares = [1.0] if use == "top" else pytest.approx([1 / 3] * 3)
    assert report.layer_shares == {"below": shares, "above": shares}
    assert report.scale["below"] != 1.0 != report.scale["above"]


def test_a_mix_is_learned_below_and_above(place):
    report = place.fit("both", "elmo.where=both", SHORT)
    below, above = report.layer_shares["below"], report.layer_shares["above"]
    assert below != above
    assert sum(below) == pytest.approx(1.0)
    assert below != pytest.approx([1 / 3] * 3, abs=1e-4)


def test_lambda_is_in_the_loss(place):
    model, examples = build(place, "elmo.where=both", "elmo.penalty=0.5")
    model.network.eval()
    for number, mix in enumerate(model.mixes.values()):
        torch.nn.init.constant_(mix.mix.weights, 1.0 + number)
    plain = model.network.loss(model.make_batch(examples[:4], with_gold=True))
    penalty = 0.5 * (3 * 1.0 + 3 * 4.0)
    assert (model.loss(examples[:4]) - plain).item() == pytest.approx(penalty)


def test_a_frozen_bilm_stays_as_it_was_and_is_not_saved(place, monkeypatch):
    loaded = []
    monkeypatch.setattr(
        "elmore.tasks.fit.elmo.load_model",
        lambda name: loaded.append(load_model(name)) or loaded[-1],
    )
    place.fit("frozen", "elmo.where=input", SHORT)
    used = loaded[-1]  # the first is for the fingerprint
    assert used.fingerprint() == load_model(place.model).fingerprint()
    assert all(weight.grad is None for weight in used.parameters())
    assert not (place.folder / "frozen" / "elmo").exists()


class EmbedderMade(Exception):
    """Says where the weights of a biLM are that an embedder is made of."""


def make_no_embedder(model):
    raise EmbedderMade({weight.device.type for weight in model.parameters()})


def test_a_frozen_bilm_computes_on_the_device_asked_for(place, monkeypatch):
    """Weights can be moved to torch's meta device on any machine, though it cannot compute."""
    monkeypatch.setattr("elmore.tasks.fit.fit.read_device", torch.device)
    monkeypatch.setattr("elmore.tasks.fit.elmo.Embedder", make_no_embedder)
    with pytest.raises(EmbedderMade) as made:
        place.fit("elsewhere", "elmo.where=input", SHORT, device="meta")
    assert made.value.args == ({"meta"},)


def test_a_loaded_task_computes_layers_on_the_device_asked_for(place, monkeypatch):
    place.fit("on-cpu", "elmo.where=input", SHORT)
    monkeypatch.setattr("elmore.tasks.fit.folder.read_device", torch.device)
    monkeypatch.setattr("elmore.tasks.fit.folder.Embedder", make_no_embedder)
    with pytest.raises(EmbedderMade) as made:
        load_task_model(place.folder / "on-cpu", device="meta")
    assert made.value.args == ({"meta"},)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["f16", "f32"])
def test_cached_layers_and_live_ones_give_the_same_scores(place, precision):
    changes = ("elmo.where=both", f"elmo.precision={precision}")
    report = place.fit(precision, *changes)
    loaded = load_task_model(place.folder / precision)
    assert isinstance(loaded.layers, LiveLayers)
    for part in ("dev", "test"):
        examples = loaded.task.read(place.data / f"{part}.txt")
        assert loaded.score(examples) == report.scores[part]


def test_layer_norm_sees_no_padding(place):
    model, examples = build(place, "elmo.where=both", "elmo.layer_norm=true")
    model.network.eval()
    some = sorted(examples, key=lambda example: len(example.tokens))
    batch = model.make_batch([some[0], some[-1]], with_gold=True)
    (tokens,) = batch.sentences
    vectors = model.tokens.below(tokens)
    assert not vectors[0, len(some[0].tokens) :].any()
    # Other numbers behind the end of a sentence, and more of them, change nothing.
    noisy = tokens.with_layers(tokens.layers + 100.0 * ~tokens.mask[..., None])
    assert torch.equal(model.tokens.below(noisy), vectors)
    assert model.network.loss(batch).isfinite()


@pytest.mark.slow
def test_a_bilm_that_learns_is_saved_with_the_task(place, tmp_path):
    changes = ("elmo.where=both", "elmo.training=task", "elmo.unfreeze_epochs=0.5")
    report = place.fit("task", *changes, "elmo.learning_rate=0.01")
    learned = load_model(place.folder / "task" / "elmo")
    assert learned.fingerprint() != load_model(place.model).fingerprint()
    (place.folder / "task").rename(tmp_path / "elsewhere")
    loaded = load_task_model(tmp_path / "elsewhere")
    for part in ("dev", "test"):
        assert loaded.score(loaded.task.read(place.data / f"{part}.txt")) == report.scores[part]


def test_of_a_few_examples_out_of_many_only_those_are_embedded(place, tmp_path):
    sizes = []
    for change in ("training.max_examples=2", "training.share=0.1"):
        watcher = Watcher()
        place.fit(f"few-{change}", "elmo.where=input", SHORT, change, observer=watcher)
        embedded = [stage for stage in watcher.stages if stage.startswith("embedding")]
        sizes.append(int(embedded[-1].split()[-2]) if embedded else None)
    few, shared = sizes
    assert few is not None
    assert shared is None or shared > few, "a share has the layers of all examples"


def test_shares_of_a_few_examples_have_their_layers_in_common(place):
    embedded = []
    for share in (1.0, 0.5):
        watcher = Watcher()
        changes = ("training.max_examples=6", f"training.share={share}")
        place.fit(f"part-{share}", "elmo.where=input", SHORT, *changes, observer=watcher)
        embedded.append(any(stage.startswith("embedding") for stage in watcher.stages))
    assert embedded == [True, False]

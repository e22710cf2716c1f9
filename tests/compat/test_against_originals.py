"""The drop-in modules give the numbers of the libraries themselves, in the same order of calls.

`make test-integrations` installs these libraries. AllenNLP 0.9 can no longer be installed.
"""

import importlib.util
import inspect
import json
import random
import sys
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import h5py
import numpy as np
import pytest

from elmore.compat import bilm, elmoformanylangs, simple_elmo
from elmore.compat import tensorflow as stand_in
from tests.compat.old_models import OldModel, assert_close
from tests.weights import peer_files

# The libraries use what has been deprecated since.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

WORDS = ["The", "bank", "of", "a", "river", "<S>", "naïve", "日本語", "long" * 20, "."]


def import_original(name: str) -> ModuleType:
    """Import a library that is installed, or skip the test."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed; make test-integrations does so")
    return importlib.import_module(name)


def make_sentences(seed: int, count: int) -> list[list[str]]:
    chance = random.Random(seed)
    return [chance.choices(WORDS, k=chance.randint(1, 7)) for _ in range(count)]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    model = OldModel(tmp_path_factory.mktemp("originals") / "model")
    (model.folder / "vocab.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *WORDS]) + "\n")
    return model


@pytest.fixture(scope="module")
def tensorflow_1():
    """Put TensorFlow 1's functions, which bilm-tf calls, in the place of TensorFlow 2."""
    real = import_original("tensorflow")
    real.compat.v1.disable_eager_execution()
    real.compat.v1.disable_resource_variables()
    sys.modules["tensorflow"] = real.compat.v1
    yield real.compat.v1
    sys.modules["tensorflow"] = real


def run_session(tf, library, old, *, folder):
    """Return what two placeholders give in turn, from characters and from cached tokens."""
    results = []
    vocabulary, files = str(old.folder / "vocab.txt"), (old.options, old.weights)
    embeddings = str(folder / f"{tf.__name__}.hdf5")
    library.dump_token_embeddings(vocabulary, *files, embeddings)
    for is_cached in (False, True):
        tf.reset_default_graph()
        shape = (None, None) if is_cached else (None, None, 50)
        inputs = [tf.placeholder("int32", shape=shape) for _ in range(2)]
        settings = {"use_character_inputs": False, "embedding_weight_file": embeddings}
        model = library.BidirectionalLanguageModel(*files, **(settings if is_cached else {}))
        outputs = [model(ids) for ids in inputs]
        mixes = [
            library.weight_layers("mean", outputs[0], l2_coef=0.0),
            library.weight_layers("top", outputs[1], use_top_only=True),
            library.weight_layers("norm", outputs[0], l2_coef=0.1, do_layer_norm=True),
        ]
        batcher = library.TokenBatcher(vocabulary) if is_cached else library.Batcher(vocabulary, 50)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for number, size in enumerate([3, 1, 4, 2, 2, 5]):
                ids = batcher.batch_sentences(make_sentences(number, size))
                place = number % 2
                wanted = [outputs[place], [mix["weighted_op"] for mix in mixes[place::2]]]
                found, mixed = session.run(wanted, feed_dict={inputs[place]: ids})
                results += [ids, *(found[name] for name in sorted(found)), *mixed]
    return results


def test_bilm_tf_with_placeholders(old, tensorflow_1, tmp_path):
    original = import_original("bilm")
    wanted = run_session(tensorflow_1, original, old, folder=tmp_path)
    found = run_session(stand_in, bilm, old, folder=tmp_path)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        assert_close(one.astype(float), other.astype(float))


def test_bilm_tf_dumps(old, tensorflow_1, tmp_path):
    original = import_original("bilm")
    lines = [" ".join(sentence) for sentence in make_sentences(0, 9)]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    files = [str(old.folder / "vocab.txt"), str(tmp_path / "in.txt"), old.options, old.weights]
    tensorflow_1.reset_default_graph()
    for library, name in ((original, "theirs.h5"), (bilm, "ours.h5")):
        library.dump_bilm_embeddings(*files, str(tmp_path / name))
    with h5py.File(tmp_path / "theirs.h5") as theirs, h5py.File(tmp_path / "ours.h5") as ours:
        assert list(theirs) == list(ours)
        for key in theirs:
            assert ours[key].dtype == theirs[key].dtype
            assert_close(ours[key][...], theirs[key][...])


@pytest.mark.parametrize("warmup", [True, False])
@pytest.mark.parametrize("layers", ["average", "top", "all"])
def test_simple_elmo(old, layers, warmup):
    tf = import_original("tensorflow").compat.v1
    original = import_original("simple_elmo")
    tf.reset_default_graph()
    texts = make_sentences(1, 11)
    vectors = []
    for library in (original, simple_elmo):
        model = library.ElmoModel()
        model.load(str(old.folder), max_batch_size=4)
        vectors.append(model.get_elmo_vectors(texts, warmup=warmup, layers=layers))
    assert vectors[0].dtype == vectors[1].dtype
    assert_close(vectors[1], vectors[0])


@pytest.mark.parametrize("output_layer", [-2, -1, 0, 1, 2])
def test_elmoformanylangs(output_layer, tmp_path):
    original = import_original("elmoformanylangs")
    architecture = peer_files.make_architecture()
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(tmp_path, architecture, *weights)
    config = json.loads((tmp_path / "config.json").read_text())
    assert not Path(config["config_path"]).exists()  # as in published models
    embedders = [library.Embedder(str(tmp_path), 3) for library in (original, elmoformanylangs)]
    for seed in range(3):
        sentences = make_sentences(seed, 8)
        found = []
        for embedder in embedders:
            random.seed(seed)
            found.append(embedder.sents2elmo(sentences, output_layer=output_layer))
        for theirs, ours in zip(*found, strict=True):
            assert ours.dtype == theirs.dtype == np.float32
            assert_close(ours, theirs)


CALLS = [
    (bilm, "Batcher.__init__"),
    (bilm, "Batcher.batch_sentences"),
    (bilm, "TokenBatcher.__init__"),
    (bilm, "TokenBatcher.batch_sentences"),
    (bilm, "BidirectionalLanguageModel.__init__"),
    (bilm, "BidirectionalLanguageModel.__call__"),
    (bilm, "weight_layers"),
    (bilm, "dump_bilm_embeddings"),
    (bilm, "dump_token_embeddings"),
    (elmoformanylangs, "Embedder.__init__"),
    (elmoformanylangs, "Embedder.sents2elmo"),
    (simple_elmo, "ElmoModel.__init__"),
    (simple_elmo, "ElmoModel.load"),
    (simple_elmo, "ElmoModel.get_elmo_vectors"),
    (simple_elmo, "ElmoModel.get_elmo_vector_average"),
    (simple_elmo, "ElmoModel.get_elmo_substitutes"),
]


@pytest.mark.parametrize(("module", "name"), CALLS)
def test_arguments_have_the_names_order_and_defaults_of_the_original(module, name, tensorflow_1):
    original = import_original(module.__name__.rsplit(".", 1)[1])
    found, wanted = (read_arguments(attrgetter(name)(each)) for each in (module, original))
    assert found == wanted


def read_arguments(function):
    """Return the names and defaults of positional arguments; elmore adds others by keyword."""
    return [
        (parameter.name, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]

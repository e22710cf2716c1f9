import json
import random
import sys

import h5py
import numpy as np
import pytest

from elmore.compat.elmoformanylangs import Embedder
from elmore.compat.elmoformanylangs.__main__ import main, read_sentences
from elmore.errors import ElmoreError, ModelError
from elmore.weights.loading import load_model
from tests import tiny
from tests.compat.old_models import assert_close
from tests.weights import peer_files

SENTENCES = [["我", "a"], ["café", "is", "a", "b"], ["c"], ["The"], ["a", "b", "c"], ["b", "c"]]
FIXTURES = tiny.FIXTURES / "elmoformanylangs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("compat") / "model"
    architecture = peer_files.make_architecture()
    peer_files.write_many_langs_folder(
        path, architecture, *peer_files.make_many_langs(architecture)
    )
    return path


def read_with_state(folder, batches):
    """Return the layers of each sentence of consecutive batches, from the network itself."""
    model, state, found = load_model(folder), None, []
    for batch in batches:
        given = model.batch([SENTENCES[number] for number in batch])
        with peer_files.single_thread():
            output = model.bilm(given, state)
        state = output.state
        parts = output.layers.split(given.lengths.tolist(), dim=1)
        found += [part[:, 1:-1].numpy() for part in parts]
    return found


def test_sentences_are_read_by_length_in_shuffled_batches_with_carried_state(folder):
    by_length = [[1, 4], [0, 5], [2, 3]]
    order = [0, 1, 2]
    random.seed(7)
    random.shuffle(order)
    random.seed(7)
    batches = [by_length[number] for number in order]
    wanted = read_with_state(folder, batches)
    found = Embedder(folder, batch_size=2).sents2elmo(SENTENCES, -2)
    for number, layers in zip([n for batch in batches for n in batch], wanted, strict=True):
        assert found[number].dtype == np.float32
        assert_close(found[number], layers)


@pytest.mark.parametrize("layer", [-1, 0, 1, 2])
def test_a_layer_or_the_mean_is_chosen(folder, layer):
    every = Embedder(folder).sents2elmo(SENTENCES, -2)
    found = Embedder(folder).sents2elmo(SENTENCES, *([] if layer == -1 else [layer]))
    for vectors, layers in zip(found, every, strict=True):
        assert_close(vectors, layers.mean(axis=0) if layer == -1 else layers[layer])


def test_policy_reset_depends_on_nothing_else(folder):
    embedder = Embedder(folder, batch_size=2, policy="reset")
    alone = [embedder.sents2elmo([sentence])[0] for sentence in SENTENCES]
    for one, other in zip(embedder.sents2elmo(SENTENCES), alone, strict=True):
        assert np.array_equal(one, other)


def test_sentences_without_tokens_are_kept(folder):
    embedder = Embedder(folder)
    assert [vectors.shape for vectors in embedder.sents2elmo([[], ["a"]])] == [(0, 8), (1, 8)]
    assert embedder.sents2elmo([]) == []


@tiny.needs_fixtures
@pytest.mark.parametrize("name", ["word_and_char", "char_only"])
def test_its_own_vectors_come_out(name):
    sentences = json.loads((FIXTURES / name / "sentences.json").read_text())
    expected = np.load(FIXTURES / name / "expected.npz")
    found = Embedder(FIXTURES / name).sents2elmo(sentences, -2)
    for number, layers in enumerate(found):
        assert_close(layers, expected[str(number)])


def test_the_command_writes_its_keys_and_names(folder, tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("a\tb.c\nThe\td/e\na\tb.c\n")
    arguments = ["--input", tmp_path / "in.txt", "--model", folder, "--output_layer=-1,0"]
    arguments += ["--output_prefix", tmp_path / "out", "--output_format", "hdf5,txt,xml"]
    monkeypatch.setattr(sys, "argv", ["elmoformanylangs", "test", *map(str, arguments)])
    main()
    for layer in (-1, 0):
        with h5py.File(tmp_path / f"out.ly{layer}.hdf5") as file:
            vectors = {key: file[key][...] for key in file}
        assert sorted(vectors) == ["The\td$backslash$e", "a\tb$period$c"]
        lines = (tmp_path / f"out.ly{layer}.txt").read_text().splitlines()
        assert sorted(line.split("\t")[0] for line in lines) == ["", "", "The", "a", "b.c", "d/e"]
        (line,) = [line for line in lines if line.startswith("d/e")]
        numbers = np.array(line.split("\t")[1:], float)
        np.testing.assert_allclose(numbers, vectors["The\td$backslash$e"][1], atol=1e-8)


def test_input_formats(tmp_path):
    text = "# text\n1-2\tdu\n1\tde l\n2\tle\n2.1\tx\n\n1\tab\n"
    (tmp_path / "in.conllu").write_text(text)
    for kind, wanted in {
        "conll": [["de l", "le"], ["ab"]],
        "conll_char": [list("de lle"), ["a", "b"]],
        "conll_char_vi": [["de", "l", "le"], ["ab"]],
    }.items():
        assert read_sentences(str(tmp_path / "in.conllu"), kind) == wanted


def test_other_commands_print_the_usage(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["elmoformanylangs"])
    main()
    assert "[test]" in capsys.readouterr().err


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(ModelError, match="there is no model at"):
        Embedder(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("layer", "message"),
    [("9", "--output_layer is 9, but the model has 3 layers; choose -1"), ("x", "got 'x'")],
)
def test_a_wrong_layer_is_refused_before_files_are_written(
    folder, tmp_path, monkeypatch, capsys, layer, message
):
    (tmp_path / "in.txt").write_text("a\n")
    arguments = ["--input", tmp_path / "in.txt", "--model", folder, "--output_layer", layer]
    arguments += ["--output_prefix", tmp_path / "out"]
    monkeypatch.setattr(sys, "argv", ["elmoformanylangs", "test", *map(str, arguments)])
    with pytest.raises((ElmoreError, SystemExit)) as caught:
        main()
    assert message in capsys.readouterr().err + str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\n", r"is not UTF-8 \(.*\); convert it"), (b"a b\n", "the line 'a b' has no columns")],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, message):
    (tmp_path / "in.conllu").write_bytes(content)
    with pytest.raises(ElmoreError, match=message):
        read_sentences(str(tmp_path / "in.conllu"), "conll")

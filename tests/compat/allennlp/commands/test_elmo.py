import json
import sys

import h5py
import numpy as np
import pytest

from elmore.compat.allennlp.commands import main
from elmore.compat.allennlp.commands.elmo import ElmoEmbedder
from elmore.compat.allennlp.common.checks import ConfigurationError
from tests.compat.old_models import BATCHES, OldModel, assert_close

LINES = ["a bank .", "the / b", "a bank ."]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return OldModel(tmp_path_factory.mktemp("compat") / "model")


@pytest.fixture
def run(old, tmp_path, monkeypatch):
    """Run `allennlp elmo` on some lines; return what it wrote."""

    def run_command(*arguments, lines=LINES):
        text = "\n".join(lines) + "\n"
        (tmp_path / "in.txt").write_bytes(text.encode(errors="surrogateescape"))
        files = [str(tmp_path / "in.txt"), str(tmp_path / "out.h5")]
        model = ["--options-file", old.options, "--weight-file", old.weights]
        monkeypatch.setattr(sys, "argv", ["allennlp", "elmo", *files, *model, *arguments])
        main()
        with h5py.File(files[1]) as file:
            return {key: file[key][...] for key in file}

    return run_command


def test_an_embedder_carries_state_from_batch_to_batch(old):
    embedder = ElmoEmbedder(old.options, old.weights)
    for batch, wanted in zip(BATCHES, old.expected(BATCHES), strict=True):
        found = embedder.embed_batch(batch)
        for sentence, vectors, layers in zip(batch, found, wanted, strict=True):
            if sentence:
                assert vectors.dtype == np.float32
                assert_close(vectors, layers)


def test_policy_reset_gives_a_sentence_the_same_vectors_each_time(old):
    embedder = ElmoEmbedder(old.options, old.weights, policy="reset")
    first, second = (embedder.embed_sentence(["a", "bank"]) for _ in range(2))
    assert np.array_equal(first, second)


def test_a_sentence_may_be_an_array_of_tokens(old):
    embedder = ElmoEmbedder(old.options, old.weights, policy="reset")
    tokens = ["a", "bank"]
    assert np.array_equal(
        embedder.embed_sentence(np.array(tokens)), embedder.embed_sentence(tokens)
    )


def test_a_stream_is_cut_into_batches(old):
    sentences = [sentence for batch in BATCHES for sentence in batch if sentence]
    batches = [sentences[:2], sentences[2:4], sentences[4:6], sentences[6:8], sentences[8:]]
    found = ElmoEmbedder(old.options, old.weights).embed_sentences(iter(sentences), batch_size=2)
    wanted = [layers for batch in old.expected(batches) for layers in batch]
    for vectors, layers in zip(found, wanted, strict=True):
        assert_close(vectors, layers)


def test_padded_embeddings_are_zero_at_padding(old):
    vectors, mask = ElmoEmbedder(old.options, old.weights).batch_to_embeddings([["a", "b"], ["c"]])
    assert vectors.shape == (2, 3, 2, 10)
    assert mask.tolist() == [[1, 1], [1, 0]]
    assert not vectors[1, :, 1].any()
    assert_close(vectors[0].numpy(), old.expected([[["a", "b"]]])[0][0])


def test_a_sentence_without_tokens_has_the_shape_of_the_original_model(old):
    embedder = ElmoEmbedder(old.options, old.weights)
    assert embedder.embed_sentence([]).shape == (3, 0, 1024)
    assert [vectors.shape for vectors in embedder.embed_batch([["a"], []])][1] == (3, 0, 1024)


@pytest.mark.parametrize("layers", ["--all", "--top", "--average"])
def test_the_command_writes_the_chosen_layers(old, run, layers):
    wanted = old.expected([[line.split() for line in LINES]])[0]
    choose = {"--all": lambda x: x, "--top": lambda x: x[-1], "--average": lambda x: x.mean(axis=0)}
    found = run(layers)
    assert sorted(found) == ["0", "1", "2", "sentence_to_index"]
    for number, vectors in enumerate(wanted):
        assert_close(found[str(number)], choose[layers](vectors))
        assert found[str(number)].dtype == np.float32
    assert found["sentence_to_index"].shape == (1,)
    assert json.loads(found["sentence_to_index"][0]) == {"a bank .": "2", "the / b": "1"}


def test_the_batch_size_decides_which_row_a_line_continues(old, run):
    found = run("--all", "--batch-size", "1")
    wanted = old.expected([[line.split()] for line in LINES])
    for number, (vectors,) in enumerate(wanted):
        assert_close(found[str(number)], vectors)


def test_keys_are_chosen_by_options(run):
    assert sorted(run("--all", "--forget-sentences")) == ["0", "1", "2"]
    assert list(run("--top", "--use-sentence-keys", lines=["a b", "c"])) == ["a b", "c"]
    with pytest.raises(ConfigurationError, match="already has the key 'c'"):
        run("--top", "--use-sentence-keys", lines=["c", "c"])


def test_wrong_input_is_refused(run, old):
    with pytest.raises(ConfigurationError, match=r"empty lines at indexes \[1, 2\]"):
        run("--all", lines=["a", "", " ", "b"])
    with pytest.raises(SystemExit):
        run("--all", "--top")
    with pytest.raises(FileNotFoundError, match=r"download https://allennlp.s3"):
        ElmoEmbedder()


def test_text_that_is_not_utf8_is_refused(run):
    with pytest.raises(ConfigurationError, match=r"in\.txt is not UTF-8 \(.*\); convert it"):
        run("--all", lines=["\udcff"])


def test_a_failure_keeps_the_file_that_was_there(run, tmp_path):
    (tmp_path / "out.h5").write_text("kept")
    with pytest.raises(ConfigurationError, match="already has the key"):
        run("--all", "--use-sentence-keys")
    assert (tmp_path / "out.h5").read_text() == "kept"
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "out.h5"}

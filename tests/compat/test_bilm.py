import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmore import ElmoreError
from elmore.compat.bilm import (
    Batcher,
    BidirectionalLanguageModel,
    TokenBatcher,
    dump_bilm_embeddings,
    dump_token_embeddings,
    weight_layers,
)
from tests import reference, tiny
from tests.compat.old_models import BATCHES, OldModel, assert_close

BILM_TF = tiny.FIXTURES / "bilm-tf" / "model"
WORDS = ["<S>", "</S>", "<UNK>", "a", "bank", "The"]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return OldModel(tmp_path_factory.mktemp("compat") / "model")


@pytest.fixture
def vocabulary(tmp_path):
    (tmp_path / "vocabulary.txt").write_text("\n".join([*WORDS, "!!!MAXTERMID"]) + "\n")
    return tmp_path / "vocabulary.txt"


def test_batches_of_characters_have_markers_and_padding(vocabulary):
    ids = Batcher(vocabulary, 8).batch_sentences([["a", "naïveté", "<S>"], []])
    assert (ids.dtype, ids.shape) == (np.int64, (2, 5, 8))
    for place, token in enumerate(["<S>", "a", "naïveté", "<S>", "</S>"]):
        wanted = [1 + unit for unit in reference.bilm_tf_char_ids(token, max_chars=8)]
        assert ids[0, place].tolist() == wanted
    assert ids[1, 1].tolist() == ids[0, 4].tolist()
    assert not ids[1, 2:].any()


def test_without_markers_in_the_vocabulary_its_last_word_is_spelled_as_one(tmp_path):
    """A trap of bilm-tf's that old vectors depend on."""
    (tmp_path / "vocabulary.txt").write_text("a\nb\n")
    ids = Batcher(tmp_path / "vocabulary.txt", 5).batch_sentences([["a", "b"]])
    assert ids[0, 2].tolist() == ids[0, 3].tolist()


def test_batches_of_words_are_line_numbers(vocabulary):
    ids = TokenBatcher(vocabulary).batch_sentences([["a", "new", "bank"], ["The"]])
    assert ids.tolist() == [[1, 4, 3, 5, 2], [1, 6, 2, 0, 0]]


def test_layers_with_carried_state_and_bilm_tfs_padding(old):
    model, batcher = BidirectionalLanguageModel(old.options, old.weights), Batcher(None, 50)
    padding = np.tile(old.padding_vector(), 2)
    for batch, wanted in zip(BATCHES, old.expected(BATCHES), strict=True):
        output = model(batcher.batch_sentences(batch))
        longest = max(map(len, batch))
        assert output["lm_embeddings"].shape == (len(batch), 3, longest, 10)
        assert output["lengths"].dtype == np.int32
        assert output["lengths"].tolist() == [len(sentence) for sentence in batch]
        assert output["mask"].sum(axis=1).tolist() == output["lengths"].tolist()
        for row, layers in enumerate(wanted):
            length = layers.shape[1]
            assert_close(output["lm_embeddings"][row, :, :length], layers)
            after = output["lm_embeddings"][row, :, length:]
            assert_close(after[0], np.broadcast_to(padding, after[0].shape))
            assert not after[1:].any()
            assert_close(output["token_embeddings"][row, 1 : 1 + length], layers[0, :, :5])


def test_policy_reset_gives_the_same_vectors_each_time(old):
    model = BidirectionalLanguageModel(old.options, old.weights, policy="reset")
    ids = Batcher(None, 50).batch_sentences([["a", "bank"]])
    assert np.array_equal(model(ids)["lm_embeddings"], model(ids)["lm_embeddings"])


def test_word_vectors_from_a_file_take_the_place_of_characters(old, vocabulary, tmp_path):
    dump_token_embeddings(vocabulary, old.options, old.weights, tmp_path / "vectors.hdf5")
    sentences = [["a", "bank"], ["The"]]
    wanted = BidirectionalLanguageModel(old.options, old.weights)(
        Batcher(vocabulary, 50).batch_sentences(sentences)
    )
    model = BidirectionalLanguageModel(
        old.options,
        old.weights,
        use_character_inputs=False,
        embedding_weight_file=tmp_path / "vectors.hdf5",
    )
    found = model(TokenBatcher(vocabulary).batch_sentences(sentences))
    mask = wanted["mask"]
    assert np.array_equal(found["mask"], mask)
    assert_close(
        found["lm_embeddings"].swapaxes(1, 2)[mask], wanted["lm_embeddings"].swapaxes(1, 2)[mask]
    )
    assert not found["lm_embeddings"][1, :, 1:].any()  # word vectors have zeros at padding


def test_dumped_word_vectors_are_those_of_the_formulas(old, vocabulary, tmp_path):
    dump_token_embeddings(vocabulary, old.options, old.weights, tmp_path / "vectors.hdf5")
    with h5py.File(tmp_path / "vectors.hdf5") as file:
        found = file["embedding"][...]
    assert found.dtype == np.float32
    assert_close(found, old.expected([[WORDS]])[0][0][0, :, :5])


def test_a_dump_carries_state_from_line_to_line(old, vocabulary, tmp_path):
    (tmp_path / "text.txt").write_text("a bank\nThe\n\na bank\n")
    dump_bilm_embeddings(
        vocabulary, tmp_path / "text.txt", old.options, old.weights, tmp_path / "out.hdf5"
    )
    wanted = old.expected([[["a", "bank"]], [["The"]], [[]], [["a", "bank"]]])
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert sorted(file) == ["0", "1", "2", "3"]
        for number, (layers,) in enumerate(wanted):
            assert_close(file[str(number)][...], layers)


def test_layers_are_weighted_as_before_training(old):
    output = BidirectionalLanguageModel(old.options, old.weights)(
        Batcher(None, 50).batch_sentences([["a", "bank"], ["b"]])
    )
    layers, mask = output["lm_embeddings"].astype(float), output["mask"]
    found = weight_layers("input", output, l2_coef=0.0)
    assert_close(found["weighted_op"], layers.mean(axis=1))
    assert found["regularization_op"] == [0.0]
    top = weight_layers("input", output, use_top_only=True)
    assert_close(top["weighted_op"], layers[:, -1])
    normed = [
        (layer - layer[mask].mean()) / layer[mask].std() for layer in np.swapaxes(layers, 0, 1)
    ]
    found = weight_layers("input", output, do_layer_norm=True)["weighted_op"]
    assert_close(found, np.mean(normed, axis=0))


def test_wrong_calls_are_errors(old):
    with pytest.raises(ValueError, match="embedding_weight_file is required"):
        BidirectionalLanguageModel(old.options, old.weights, use_character_inputs=False)
    with pytest.raises(ValueError, match="has no markers"):
        BidirectionalLanguageModel(old.options, old.weights)(np.zeros((1, 2, 50), np.int64))
    model = BidirectionalLanguageModel(old.options, old.weights, max_batch_size=1)
    with pytest.raises(ValueError, match="larger than max_batch_size = 1"):
        model(Batcher(None, 50).batch_sentences([["a"], ["b"]]))


@tiny.needs_fixtures
def test_bilm_tfs_own_vectors_come_out():
    rows = json.loads((BILM_TF / "lm_embeddings_sentences.json").read_text())
    model = BidirectionalLanguageModel(BILM_TF / "options.json", BILM_TF / "lm_weights.hdf5")
    batcher = Batcher(BILM_TF / "vocab_test.txt", 50)
    for number in range(10):
        sentences = [row[number].split() for row in rows]
        output = model(batcher.batch_sentences(sentences))["lm_embeddings"]
        for row, sentence in enumerate(sentences):
            with h5py.File(Path(BILM_TF) / f"lm_embeddings_{row}.hdf5") as file:
                wanted = np.concatenate(list(file[str(number)][...]), axis=1)
            assert_close(output[row, -1, : len(sentence)], wanted)


def test_a_placeholder_of_tensorflow_itself_is_explained(old):
    class Placeholder:
        def __array__(self, *_, **__):
            raise NotImplementedError("Cannot convert a symbolic tf.Tensor to a numpy array.")

    model = BidirectionalLanguageModel(old.options, old.weights)
    with pytest.raises(ElmoreError, match="call the model with the batch"):
        model(Placeholder())

"""bilm-tf's word vectors in place of characters: token-embedding files and vocabularies."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmore.errors import ElmoreError, ModelError
from elmore.weights.bilm_tf import read_bilm_tf, write_bilm_tf
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model
from tests import reference
from tests.weights import peer_files
from tests.weights.peer_files import SENTENCES, largest_difference, make_arrays, make_options, run

VOCABULARY = ["<S>", "</S>", "<UNK>", "The", "café", "日本語", "naïve"]


def write_word_files(
    folder: Path, *, options: dict[str, Any]
) -> tuple[peer_files.Arrays, list[Path]]:
    """Write a model of word vectors; its weight file has characters too, as bilm-tf's has."""
    arrays = make_arrays(options)
    table = np.random.default_rng(5).normal(
        size=(len(VOCABULARY), options["lstm"]["projection_dim"])
    )
    arrays["embedding"] = table.astype(np.float32)
    paths = [
        *peer_files.write_bilm_tf_files(folder, options, arrays),
        folder / "vocab_embeddings.hdf5",
        folder / "vocab.txt",
    ]
    with h5py.File(paths[2], "w") as file:
        file["embedding"] = arrays["embedding"]
    paths[3].write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return arrays, paths


def load_words(paths: list[Path]) -> ElmoModel:
    weights, options, embeddings, vocabulary = paths
    return load_model(weights, options=options, token_embeddings=embeddings, vocabulary=vocabulary)


def reference_word_layers(
    arrays: peer_files.Arrays, options: dict[str, Any], sentences: list[list[str]]
) -> list[np.ndarray]:
    arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
    directions = [
        [
            reference.bilm_tf_cell(arrays, options, direction=direction, depth=depth)
            for depth in range(options["lstm"]["n_layers"])
        ]
        for direction in (0, 1)
    ]
    results = []
    for sentence in sentences:
        known = [word if word in VOCABULARY else "<UNK>" for word in ("<S>", *sentence, "</S>")]
        tokens = arrays["embedding"][[VOCABULARY.index(word) for word in known]]
        layers, _ = reference.read_sentence(
            tokens,
            directions,
            states=None,
            has_residuals=options["lstm"]["use_skip_connections"],
        )
        results.append(layers)
    return results


@pytest.mark.parametrize("dim", [6, 4], ids=["projected", "not projected"])
def test_word_vectors_are_looked_up_and_unknown_words_get_that_of_unk(dim, tmp_path):
    options = make_options(lstm={"dim": dim})
    arrays, paths = write_word_files(tmp_path, options=options)
    expected = reference_word_layers(arrays, options, SENTENCES)
    assert largest_difference(run(load_words(paths), SENTENCES), expected) < 1e-9


def test_word_vectors_need_no_char_cnn_in_the_options(tmp_path):
    options = make_options()
    arrays, paths = write_word_files(tmp_path, options=options)
    paths[1].write_text(json.dumps({"lstm": options["lstm"]}))
    expected = reference_word_layers(arrays, options, SENTENCES)
    assert largest_difference(run(load_words(paths), SENTENCES), expected) < 1e-9
    with pytest.raises(ModelError, match=r"options.json: .*--token-embeddings, --vocabulary"):
        load_model(paths[0], options=paths[1])


@pytest.mark.slow
def test_word_vectors_are_written_and_read_again_equal_to_the_bit(tmp_path):
    arrays, paths = write_word_files(tmp_path, options=make_options())
    model = load_words(paths)
    folder = tmp_path / "written"
    files = [folder / name for name in ("w.hdf5", "token_embeddings.hdf5", "vocabulary.txt")]
    assert write_bilm_tf(model, files[0]) == [*files, folder / "options.json"]
    peer_files.assert_equal_arrays(
        peer_files.read_all_arrays(files[1]), {"embedding": arrays["embedding"]}
    )
    assert files[2].read_text(encoding="utf-8").split("\n") == [*VOCABULARY, ""]
    rnn = {name: array for name, array in arrays.items() if name.startswith("RNN")}
    peer_files.assert_equal_arrays(peer_files.read_all_arrays(files[0]), rnn)
    again = load_model(folder, token_embeddings=files[1], vocabulary=files[2])
    assert again.fingerprint() == model.fingerprint()
    before = (folder / "options.json").stat().st_mtime_ns
    write_bilm_tf(model, files[0])  # its own files are no other model's
    assert (folder / "options.json").stat().st_mtime_ns == before


def test_a_vocabulary_of_other_words_is_not_overwritten_unless_asked(tmp_path):
    _, paths = write_word_files(tmp_path, options=make_options())
    model = load_words(paths)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "vocabulary.txt").write_text("mine\n")
    with pytest.raises(ModelError, match="lists other words"):
        write_bilm_tf(model, tmp_path / "new" / "w.hdf5")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["vocabulary.txt"]
    write_bilm_tf(model, tmp_path / "new" / "w.hdf5", overwrite=True)


def test_a_vocabulary_is_read_as_bilm_tf_reads_it(tmp_path):
    arrays, paths = write_word_files(tmp_path, options=make_options())
    odd = "<S>\r\n</S>\r\n<UNK>\n!!!MAXTERMID\n The \ncafé\ncafé\nnaïve"
    paths[3].write_bytes(odd.encode())
    model = load_words(paths)
    table = arrays["embedding"]
    found = run(model, [["The", "café", "naïve", "other"]])[0][0, :, : table.shape[1]]
    assert np.array_equal(found, table[[3, 5, 6, 2]].astype(np.float64))


@pytest.mark.parametrize(
    ("vocabulary", "complaint"),
    [
        (VOCABULARY[:-1], r"shape \(7, 4\), expected \(6, 4\)"),
        ([*VOCABULARY, "more"], r"shape \(7, 4\), expected \(8, 4\)"),
        (["<S>", "</S>", "no", *VOCABULARY[3:]], "lacks '<UNK>'"),
        (["no", "</S>", "<UNK>", *VOCABULARY[3:]], "lacks '<S>'"),
        ([], "num_words is 0"),
    ],
    ids=["too few", "too many", "no unknown", "no begin", "empty"],
)
def test_a_vocabulary_that_does_not_fit_is_refused(vocabulary, complaint, tmp_path):
    _, paths = write_word_files(tmp_path, options=make_options())
    paths[3].write_text("".join(f"{word}\n" for word in vocabulary), encoding="utf-8")
    with pytest.raises(ElmoreError, match=complaint):
        load_words(paths)


def test_word_vectors_and_vocabulary_are_asked_for_together(tmp_path):
    _, paths = write_word_files(tmp_path, options=make_options())
    with pytest.raises(ModelError, match="give both"):
        read_bilm_tf(paths[0], paths[1], vocabulary_path=paths[3])
    with pytest.raises(ModelError, match="give both"):
        read_bilm_tf(paths[0], paths[1], token_embeddings_path=paths[2])

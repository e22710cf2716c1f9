"""Vectors of FASTA records are stored under their ids, in every format."""

import json

import h5py
import numpy as np
import pytest

import elmore
from elmore.embed.job import embed_to_file
from elmore.embed.vector_file import read_header, read_vectors
from elmore.errors import ConfigError, DataError
from tests import tiny

RECORDS = {"sp|P1|A": "MKTAYIAK", "PF1/3-9": "ACDEF", "7": "MX"}
FORMATS = ["h5", "npz", "parquet"]


@pytest.fixture(scope="module")
def embedder():
    return elmore.Embedder(tiny.model())


@pytest.fixture
def fasta(tmp_path):
    path = tmp_path / "a.fasta"
    path.write_text("".join(f">{key} about\n{letters}\n" for key, letters in RECORDS.items()))
    return path


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("layers", ["sum", "all"])
def test_vectors_are_read_under_their_ids(suffix, layers, embedder, fasta, tmp_path):
    embed_to_file(embedder, fasta, tmp_path / f"v.{suffix}", layers=layers)
    found = list(read_vectors(tmp_path / f"v.{suffix}"))
    assert [sentence.key for sentence in found] == list(RECORDS)
    assert [sentence.line for sentence in found] == [1, 3, 5]
    for sentence, letters in zip(found, RECORDS.values(), strict=True):
        assert sentence.tokens == list(letters)
        expected = embedder.embed([list(letters)], layers=layers)[0]
        assert sentence.vectors.tobytes() == expected.tobytes()


def test_other_programs_find_arrays_by_id(embedder, fasta, tmp_path):
    embed_to_file(embedder, fasta, tmp_path / "v.h5")
    embed_to_file(embedder, fasta, tmp_path / "v.npz")
    with h5py.File(tmp_path / "v.h5") as file, np.load(tmp_path / "v.npz") as arrays:
        for name in ("sp|P1|A", "PF1_3-9", "7"):
            assert np.array_equal(file[name][...], arrays[name])
        assert [key.decode() for key in file["key"]] == list(RECORDS)
        assert "sentence_to_index" not in file


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("pool", ["mean", "max", "last"])
def test_one_vector_per_record(suffix, pool, embedder, fasta, tmp_path):
    path = tmp_path / f"v.{suffix}"
    embed_to_file(embedder, fasta, path, layers="sum", pool=pool)
    sequences = [list(letters) for letters in RECORDS.values()]
    expected = embedder.sentence_vectors(sequences, layers="sum", pool=pool)
    found = list(read_vectors(path))
    assert np.array_equal(np.concatenate([sentence.vectors for sentence in found]), expected)
    assert [sentence.key for sentence in found] == list(RECORDS)
    assert read_header(path).pool == pool


def test_pooled_text_keeps_its_sentences_and_empty_lines(embedder, tmp_path):
    (tmp_path / "a.txt").write_text("The bank .\n\nA river\n")
    embed_to_file(
        embedder, tmp_path / "a.txt", tmp_path / "v.h5", form="tokenized", layers="all", pool="max"
    )
    found = list(read_vectors(tmp_path / "v.h5"))
    assert [sentence.tokens for sentence in found] == [["The bank ."], [""], ["A river"]]
    expected = embedder.embed([["A", "river"]], layers="all")[0].max(axis=1, keepdims=True)
    assert np.array_equal(found[2].vectors, expected)
    assert not found[1].vectors.any()


def test_a_pooled_job_is_resumed(embedder, fasta, tmp_path, monkeypatch):
    monkeypatch.setattr("elmore.embed.job.CHUNK_BYTES", 1)

    def stop(num_sentences: int, _num_tokens: int) -> None:
        if num_sentences == 3:
            raise KeyboardInterrupt

    small = elmore.Embedder(tiny.model(), tokens_per_batch=1)
    with pytest.raises(KeyboardInterrupt):
        embed_to_file(small, fasta, tmp_path / "v.h5", pool="mean", on_progress=stop)
    report = embed_to_file(small, fasta, tmp_path / "v.h5", pool="mean")
    assert report.num_resumed_sentences > 0
    embed_to_file(embedder, fasta, tmp_path / "w.h5", pool="mean")
    for ours, other in zip(
        read_vectors(tmp_path / "v.h5"), read_vectors(tmp_path / "w.h5"), strict=True
    ):
        assert (ours.key, ours.vectors.tobytes()) == (other.key, other.vectors.tobytes())


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        (("a", "b", "a"), "line 5: the id 'a' occurs twice"),
        (("a/b", "a_b"), "line 3: the id 'a_b' occurs twice"),
        (("line",), "line 1: the id 'line' is used for other data"),
    ],
)
def test_ids_that_cannot_name_one_array_are_refused(keys, match, embedder, tmp_path):
    path = tmp_path / "a.fasta"
    path.write_text("".join(f">{key}\nMKT\n" for key in keys))
    with pytest.raises(DataError, match=match):
        embed_to_file(embedder, path, tmp_path / "v.h5")
    assert not (tmp_path / "v.h5").exists()
    assert not (tmp_path / "v.h5.partial").exists()


def test_documents_of_one_record_need_no_state(fasta, tmp_path):
    carrying = elmore.Embedder(tiny.model(), state="document")
    with pytest.raises(ConfigError, match="every record is a document"):
        embed_to_file(carrying, fasta, tmp_path / "v.h5")


def test_files_without_pooling_do_not_mention_it(embedder, tmp_path):
    embed_to_file(embedder, ["A bank ."], tmp_path / "v.h5")
    with h5py.File(tmp_path / "v.h5") as file:
        assert "pool" not in json.loads(file.attrs["elmore"])
        assert "key" not in file


def test_the_sum_of_layers(embedder):
    layers = embedder.embed("A bank.", layers="all")
    assert np.allclose(embedder.embed("A bank.", layers="sum"), layers.sum(axis=0), atol=1e-6)
    assert str(embedder.choose_layers("sum")) == "sum"


def test_commands(fasta, tmp_path, elmore_command):
    out = tmp_path / "v.h5"
    made = elmore_command("embed", fasta, "--layers", "sum", "--pool", "mean", "--out", out)
    assert made.status == 0, made.err
    printed = elmore_command("embed", fasta, "--layers", "sum").out.splitlines()
    assert [json.loads(line)["key"] for line in printed] == list(RECORDS)
    refused = elmore_command("embed", fasta, "--pool", "median", "--out", out)
    assert (refused.status, "median" in refused.err) == (2, True)
    assert elmore_command("embed", fasta, "--pool", "mean").status == 2

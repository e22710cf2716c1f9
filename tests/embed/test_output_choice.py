"""What is kept of a text: pooled documents, chosen words, and the same after a kill."""

import copy
from itertools import permutations

import numpy as np
import pytest

from elmore.embed import job
from elmore.embed.embedder import Embedder
from elmore.embed.job import embed_to_file
from elmore.embed.vector_file import read_header, read_vectors
from elmore.errors import ElmoreError
from tests import tiny

DOCUMENTS = [[["a", "bad"], ["cafe"]], [["bad"]], [["a"], ["a", "b", "c"], ["bad", "a"]]]
SENTENCES = [tokens for document in DOCUMENTS for tokens in [*document, [], []]]
SUFFIXES = [".h5", ".parquet", ".npz"]


@pytest.fixture(scope="module")
def embedder():
    return Embedder(tiny.model(scale=0.4), tokens_per_batch=4)


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_document_has_one_vector(tmp_path, embedder, pool, suffix):
    embed_to_file(embedder, SENTENCES, tmp_path / f"v{suffix}", pool=pool, per="document")
    found = list(read_vectors(tmp_path / f"v{suffix}"))
    for entry, document in zip(found, DOCUMENTS, strict=True):
        tokens = np.concatenate(embedder.embed(document)).astype(np.float64)
        wanted = tokens.mean(axis=0) if pool == "mean" else tokens.max(axis=0)
        assert entry.tokens == [" ".join(token for tokens in document for token in tokens)]
        np.testing.assert_allclose(entry.vectors, wanted[None], atol=1e-6)
    assert [entry.line for entry in found] == [1, 5, 8]
    assert read_header(tmp_path / f"v{suffix}").per == "document"


def test_blank_lines_of_a_file_end_its_documents(tmp_path, embedder):
    (tmp_path / "t.txt").write_text("A bad cafe.\nA cafe.\n\n\nBad.\n")
    embed_to_file(embedder, tmp_path / "t.txt", tmp_path / "v.npz", pool="mean", per="document")
    found = list(read_vectors(tmp_path / "v.npz"))
    assert [(entry.line, entry.tokens) for entry in found] == [
        (1, ["A bad cafe . A cafe ."]),
        (5, ["Bad ."]),
    ]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("layers", ["average", "all"])
def test_only_the_chosen_words_are_kept(tmp_path, embedder, suffix, layers):
    path = tmp_path / f"v{suffix}"
    (tmp_path / "words.txt").write_text("bad\ncafe\n\n")
    embed_to_file(embedder, SENTENCES, path, words=tmp_path / "words.txt", layers=layers)
    found = list(read_vectors(path))
    wanted = [
        (number, [p for p, token in enumerate(tokens) if token in ("bad", "cafe")])
        for number, tokens in enumerate(SENTENCES, start=1)
    ]
    wanted = [(number, positions) for number, positions in wanted if positions]
    assert [(entry.line, entry.positions) for entry in found] == wanted
    for entry, (number, positions) in zip(found, wanted, strict=True):
        (vectors,) = embedder.embed([SENTENCES[number - 1]], layers=layers)
        assert entry.vectors.tobytes() == vectors[..., positions, :].tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {"pool": "mean", "per": "document"},
        {"words": ["bad"]},
        {"words": ["cafe"]},
        {"pool": "max"},
    ],
)
def test_an_interrupted_job_ends_with_the_same_bits(tmp_path, embedder, monkeypatch, options):
    embed_to_file(embedder, SENTENCES, tmp_path / "whole.npz", **options)
    monkeypatch.setattr(job, "CHUNK_SECONDS", 0)  # a chunk after every window

    def run(limit):
        def stop(num_sentences, _):
            if num_sentences == limit:
                raise KeyboardInterrupt

        embed_to_file(embedder, SENTENCES, tmp_path / "v.npz", on_progress=stop, **options)

    for limit in (4, 7, 9):
        with pytest.raises(KeyboardInterrupt):
            run(limit)
    report = embed_to_file(embedder, SENTENCES, tmp_path / "v.npz", **options)
    assert report.num_resumed_sentences > 0
    assert (tmp_path / "v.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_resumed_job_notices_other_text_in_words_that_are_not_kept(
    tmp_path, embedder, monkeypatch
):
    monkeypatch.setattr(job, "CHUNK_SECONDS", 0)

    def stop(num_sentences, _):
        if num_sentences == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_to_file(embedder, SENTENCES, tmp_path / "v.npz", words=["cafe"], on_progress=stop)
    changed = [["b", "bad"], *SENTENCES[1:]]
    with pytest.raises(ElmoreError, match="other text than is given now"):
        embed_to_file(embedder, changed, tmp_path / "v.npz", words=["cafe"])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"per": "document"}, "give pool mean or max"),
        ({"per": "document", "pool": "last"}, "pooled by mean or max"),
        ({"per": "page", "pool": "mean"}, "per is 'page'"),
        ({"words": ["a"], "pool": "mean"}, "give one of them"),
        ({"words": []}, "has no words"),
        ({"dim": 3}, "elmore fit-projection SAMPLE --dim 3 --layers average"),
        ({"dim": 11}, "dim"),
        ({"dim": 3, "layers": "all"}, "only one vector per token can be projected"),
        ({"dtype": "int8"}, "write a .parquet file"),
    ],
)
def test_choices_that_do_not_fit_are_refused(tmp_path, embedder, options, complaint):
    with pytest.raises(ElmoreError, match=complaint):
        embed_to_file(embedder, SENTENCES, tmp_path / "v.npz", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_stream_has_no_documents(tmp_path):
    embedder = Embedder(tiny.model(scale=0.4), state="stream")
    with pytest.raises(ElmoreError, match="a text has no documents"):
        embed_to_file(embedder, SENTENCES, tmp_path / "v.npz", pool="mean", per="document")


@pytest.fixture(scope="module")
def similar():
    """An embedder that can compare meanings."""
    embedder = Embedder(tiny.model(scale=0.4), tokens_per_batch=4)
    embedder.fit_similarity([list(pair) for pair in permutations("abcdefghij", 2)], layers=[0, 2])
    return embedder


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_vectors_for_similarity_are_those_of_sentence_vectors(tmp_path, similar, suffix):
    path = tmp_path / f"v{suffix}"
    embed_to_file(similar, SENTENCES, path, pool="similarity")
    wanted = similar.sentence_vectors(SENTENCES, pool="similarity")
    found = list(read_vectors(path))
    assert np.array_equal(np.concatenate([entry.vectors for entry in found]), wanted)
    header = read_header(path)
    facts = (header.pool, header.layers, header.num_layers, header.vector_dim)
    assert facts == ("similarity", "0,2", None, wanted.shape[1])


def test_a_job_is_not_resumed_with_another_similarity(tmp_path, similar, monkeypatch):
    monkeypatch.setattr(job, "CHUNK_SECONDS", 0)

    def stop(num_sentences, _):
        if num_sentences == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_to_file(similar, SENTENCES, tmp_path / "v.h5", pool="similarity", on_progress=stop)
    other = copy.copy(similar)
    other.fit_similarity([list(pair) for pair in permutations("klmnopqrst", 2)], layers=[0, 2])
    with pytest.raises(ElmoreError, match="projection"):
        embed_to_file(other, SENTENCES, tmp_path / "v.h5", pool="similarity")
    report = embed_to_file(similar, SENTENCES, tmp_path / "v.h5", pool="similarity")
    assert report.num_resumed_sentences > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 1}, "has layers of its own"),
        ({"dim": 3}, "has a width of its own; leave out dim"),
        ({"per": "document"}, "documents can be pooled by mean or max"),
        ({"words": ["a"]}, "give one of them"),
    ],
)
def test_what_does_not_go_with_similarity_is_named(tmp_path, similar, settings, message):
    with pytest.raises(ElmoreError, match=message):
        embed_to_file(similar, SENTENCES, tmp_path / "v.h5", pool="similarity", **settings)
    assert list(tmp_path.iterdir()) == []


def test_similarity_needs_a_model_that_has_it(tmp_path, embedder):
    with pytest.raises(ElmoreError, match="call fit_similarity"):
        embed_to_file(embedder, SENTENCES, tmp_path / "v.h5", pool="similarity")

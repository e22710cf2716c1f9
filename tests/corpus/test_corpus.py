import json
import shutil
from collections import Counter

import numpy as np
import pytest

from elmore.corpus import part as corpus_part
from elmore.corpus.corpus import open_corpus
from elmore.errors import DataError
from elmore.lm.streams import Streams
from tests.corpus.corpora import make_documents, prepare, write_tokenized

DOCUMENTS = make_documents()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora") / "corpus"
    return prepare(write_tokenized(DOCUMENTS), folder, heldout=0.3, max_words=15, min_count=2)


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copytree(made.folder, tmp_path / "copy")


def spell_out(documents):
    """The symbols of documents; None is no token but a marker, and its place says which."""
    sentences = [sentence for document in documents for sentence in document]
    return [symbol for s in sentences for symbol in [("<S>", 0), *((t, 2) for t in s), ("</S>", 1)]]


@pytest.mark.parametrize("part", ["train", "heldout"])
def test_look_up_agrees_with_reading_all_documents(made, part):
    part = getattr(made, part)
    symbols = spell_out(part.documents())
    assert part.num_symbols == len(symbols)
    ids = {word: place for place, word in enumerate(made.vocabulary)}
    offsets = np.random.default_rng(0).integers(0, len(symbols), (3, 2, 40))
    for places in (offsets, np.arange(len(symbols)), np.array(5), np.zeros((0, 2), np.int64)):
        found = part.look_up(places)
        assert found.positions.shape == found.word_ids.shape == places.shape
        assert len(set(found.tokens)) == len(found.tokens)
        assert set(found.positions.ravel().tolist()) - {0, 1} == {
            place + 2 for place in range(len(found.tokens))
        }
        for place, position, word_id in zip(
            places.ravel(), found.positions.ravel(), found.word_ids.ravel(), strict=True
        ):
            token, kind = symbols[place]
            assert position == kind if kind < 2 else found.tokens[position - 2] == token
            assert word_id == ids.get(token, ids["<UNK>"])


@pytest.mark.parametrize("part", ["train", "heldout"])
def test_sentence_bounds_are_those_of_the_sentences(made, part):
    part = getattr(made, part)
    starts, ends, start = [], [], 0
    for document in part.documents():
        for sentence in document:
            size = len(sentence) + 2
            starts += [start] * size
            ends += [start + size] * size
            start += size
    offsets = np.random.default_rng(0).permutation(part.num_symbols).reshape(1, -1)
    found_starts, found_ends = part.sentence_bounds(offsets)
    assert np.array_equal(found_starts, np.array(starts)[offsets])
    assert np.array_equal(found_ends, np.array(ends)[offsets])


def test_totals_and_counts_are_those_of_the_text(made):
    ids = {word: place for place, word in enumerate(made.vocabulary)}
    for name, part in (("train", made.train), ("heldout", made.heldout)):
        totals = made.about["parts"][name]
        documents = list(part.documents())
        tokens = [token for document in documents for sentence in document for token in sentence]
        assert part.num_documents == len(documents) > 0
        assert part.num_sentences == sum(map(len, documents))
        assert part.num_tokens == len(tokens)
        assert totals["characters"] == sum(len(token) + 1 for token in tokens)
        assert totals["outside"] == sum(ids.get(token, ids["<UNK>"]) == 2 for token in tokens) > 0
    symbols = [token for token, _ in spell_out(made.train.documents())]
    counted = Counter(token if token in ids else "<UNK>" for token in symbols)
    assert made.counts.tolist() == [counted[word] for word in made.vocabulary]
    assert made.counts.sum() == made.train.num_symbols


def test_more_shards_than_may_be_open_are_read_anyway(made, monkeypatch):
    monkeypatch.setattr(corpus_part, "MAX_OPEN_SHARDS", 2)
    assert len(made.about["shards"]) > 10
    again = open_corpus(made.folder)
    assert list(again.train.documents()) == list(made.train.documents())


def test_only_the_shards_of_the_rows_that_are_read_are_opened(made, monkeypatch):
    """As each of several processes does, on its own machine."""
    again = open_corpus(made.folder)
    opened = []
    plain = corpus_part.Shard
    monkeypatch.setattr(corpus_part, "Shard", lambda path: opened.append(path) or plain(path))
    streams = Streams(again.train, num_rows=8, window=3)
    own = streams.read(0, first_row=2, num_rows=2)
    num_opened = len(set(opened))
    assert 0 < num_opened <= 4 < len(made.about["shards"])
    whole = Streams(made.train, num_rows=8, window=3).read(0)
    assert np.array_equal(own.targets, whole.targets[:, :, 2:4])


def test_documents_come_in_blocks_of_any_size(made, monkeypatch):
    expected = list(made.train.documents())
    for size in (1, 7, 50):
        monkeypatch.setattr(corpus_part, "DOCUMENT_BLOCK_SYMBOLS", size)
        assert list(made.train.documents()) == expected


def test_its_repr_is_a_line(made):
    assert repr(made) == (
        f"<Corpus {str(made.folder)!r}: {made.train.num_tokens} tokens to train on, "
        f"{made.heldout.num_tokens} held out, vocabulary of 18>"
    )


def test_an_offset_outside_is_refused(made):
    for offset in (-1, made.train.num_symbols):
        with pytest.raises(IndexError):
            made.train.look_up(np.array([0, offset]))


def test_a_folder_that_is_not_a_corpus_is_explained(tmp_path, copy):
    with pytest.raises(DataError, match=r"none does not exist"):
        open_corpus(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="does not contain a corpus; make one"):
        open_corpus(tmp_path / "empty")
    summary = copy / "corpus.json"
    content = json.loads(summary.read_text())
    summary.write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(DataError, match=r"format 99, .*reads format 1"):
        open_corpus(copy)
    for text in ("{", "[]", "{}", '{"kind": "x", "format": 1}'):
        summary.write_text(text)
        with pytest.raises(DataError, match=r"corpus\.json is .*not elmore's"):
            open_corpus(copy)
    summary.unlink()
    with pytest.raises(DataError, match=r"unfinished; rerun .* to resume"):
        open_corpus(copy)

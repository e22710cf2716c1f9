"""A sample has about the tokens asked for, from all over the part, and reads no more than that."""

import numpy as np
import pytest

from elmore.corpus.sample import sample_documents, sample_stretches
from tests.corpus.corpora import make_documents, prepare, write_tokenized
from tests.corpus.memory_corpus import MARKS, MemoryPart


def part(num_documents: int, num_sentences: int, num_tokens: int) -> MemoryPart:
    documents = [
        [[f"d{number}"] * num_tokens for _ in range(num_sentences)]
        for number in range(num_documents)
    ]
    return MemoryPart(documents, MARKS)


@pytest.mark.parametrize(
    "sizes", [(300, 1, 5), (199, 40, 5), (3, 500, 4), (1, 3000, 2), (40, 30, 11)]
)
def test_there_is_about_as_much_as_was_asked_for(sizes):
    text = part(*sizes)
    for max_tokens in (100, 1000):
        sample = sample_documents(text, max_tokens=max_tokens)
        found = sum(len(sentence) for document in sample for sentence in document)
        assert 0.5 * max_tokens <= found <= max(1.3 * max_tokens, 200)


def test_documents_are_spread_over_the_part():
    sample = sample_documents(part(199, 40, 5), max_tokens=20_000)
    numbers = [int(document[0][0][1:]) for document in sample]
    assert numbers == sorted(set(numbers))
    assert min(numbers) < 5
    assert max(numbers) > 190


def test_an_empty_part_gives_nothing():
    assert sample_documents(MemoryPart([], MARKS), max_tokens=100) == []


@pytest.mark.parametrize("max_tokens", [1, 7, 10_000])
def test_starts_of_a_corpus_are_those_of_its_documents(tmp_path, max_tokens):
    documents = make_documents(8)
    train = prepare(write_tokenized(documents), tmp_path / "c", heldout=0.0).train
    plain = MemoryPart(documents, MARKS)
    for number in range(8):
        expected = plain.beginning(number, max_tokens=max_tokens)
        assert train.beginning(number, max_tokens=max_tokens) == expected


def test_no_more_than_the_beginning_is_looked_up(tmp_path, monkeypatch):
    text = "\n".join(["a b c d"] * 2000) + "\n"
    train = prepare(text, tmp_path / "c", heldout=0.0, chunk_bytes=4000).train
    looked_up = []
    original = train.look_up

    def watch(offsets):
        looked_up.append(offsets.size)
        return original(offsets)

    monkeypatch.setattr(train, "look_up", watch)
    assert len(train.beginning(0, max_tokens=20)) == 5
    assert sum(looked_up) < 100


@pytest.mark.parametrize("max_tokens", [1, 7, 10_000])
def test_stretches_of_a_corpus_start_with_a_sentence_and_stay_in_its_document(tmp_path, max_tokens):
    documents = make_documents(8)
    train = prepare(write_tokenized(documents), tmp_path / "c", heldout=0.0).train
    plain = MemoryPart(documents, MARKS)
    for offset in range(0, train.num_symbols, 3):
        expected = plain.stretch(offset, max_tokens=max_tokens)
        assert train.stretch(offset, max_tokens=max_tokens) == expected


def test_a_long_document_has_as_large_a_part_of_the_stretches_as_of_the_text():
    long = [["long"] * 10 for _ in range(3000)]
    short = [[["short"] * 10 for _ in range(10)] for _ in range(100)]
    text = MemoryPart([*short[:50], long, *short[50:]], MARKS)
    sample = sample_stretches(text, max_tokens=8000)
    is_long = [document[0][0] == "long" for document in sample]
    assert np.mean(is_long) == pytest.approx(0.75, abs=0.05)
    num_tokens = sum(len(sentence) for document in sample for sentence in document)
    assert 8000 <= num_tokens <= 8200


def test_a_long_sentence_is_read_once():
    text = MemoryPart([[["a"] * 5000, ["b"] * 5], [["c"] * 4]], MARKS)
    assert sample_stretches(text, max_tokens=3000) == [[["a"] * 5000]]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(5000, 1, 10), (1000, 4, 30), (50, 100, 12)])
def test_short_documents_do_not_make_a_small_sample(sizes):
    sample = sample_stretches(part(*sizes), max_tokens=10_000)
    found = sum(len(sentence) for document in sample for sentence in document)
    assert 10_000 <= found <= 10_200


def test_where_there_is_less_than_asked_for_all_of_it_is_taken():
    documents = [[["a"] * 7, ["b"]], [["c"] * 4]]
    assert sample_stretches(MemoryPart(documents, MARKS), max_tokens=12) == documents
    assert sample_stretches(MemoryPart([], MARKS), max_tokens=100) == []

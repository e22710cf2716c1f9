"""Rows of a batch are the corpus read on and on; both directions foretell, and none sees ahead."""

import numpy as np
import pytest

from elmore.errors import DataError
from elmore.lm.streams import Streams, TrainingWindow
from tests.corpus.memory_corpus import make_corpus

TEXT = """
the cat sat .
a dog
it ran and ran away quickly .

who ?
the dog saw the cat again .
"""
CORPUS = make_corpus(TEXT, vocabulary=["<S>", "</S>", "<UNK>", "the", "cat", ".", "dog"])


def streams(num_rows: int = 2, window: int = 3) -> Streams:
    return Streams(CORPUS.train, num_rows=num_rows, window=window)


def spelled(window: TrainingWindow, direction: int, row: int) -> list[str]:
    """What a row reads."""
    names = ["<S>", "</S>", *window.tokens]
    return [names[place] for place in window.positions[direction, :, row]]


def naive_rows(num_rows: int, num_symbols: int) -> list[list[list[str]]]:
    """For each row, what the forward and the backward LM read, written as a loop."""
    sentences = [line.split() for line in TEXT.split("\n") if line]
    forward = [s for x in sentences for s in ("<S>", *x, "</S>")]
    backward = [s for x in sentences for s in ("</S>", *x[::-1], "<S>")]
    starts = np.cumsum([0, *(len(x) + 2 for x in sentences)])
    rows = []
    for row in range(num_rows):
        even = row * len(forward) // num_rows
        start = int(max(s for s in starts if s <= even))
        rows.append(
            [
                [stream[(start + place) % len(stream)] for place in range(num_symbols)]
                for stream in (forward, backward)
            ]
        )
    return rows


@pytest.mark.parametrize("num_rows", [1, 2, 5])
@pytest.mark.parametrize("window", [1, 3, 50])
def test_windows_are_the_text_read_on_and_on(num_rows, window):
    made = streams(num_rows, window)
    expected = naive_rows(num_rows, 4 * window + 1)
    for step in range(4):
        found = made.read(step)
        for row in range(num_rows):
            for direction in (0, 1):
                part = expected[row][direction][step * window :]
                assert spelled(found, direction, row) == part[:window]


def test_the_next_symbol_of_a_row_is_its_target_within_a_sentence():
    made = streams(2, 4)
    ids = {word: number for number, word in enumerate(CORPUS.vocabulary)}
    expected = naive_rows(2, 41)
    for step in range(10):
        found = made.read(step)
        for row in range(2):
            for direction, last in ((0, "</S>"), (1, "<S>")):
                here = expected[row][direction][4 * step : 4 * step + 5]
                wanted = [ids.get(word, ids["<UNK>"]) for word in here[1:]]
                assert found.targets[direction, :, row].tolist() == wanted
                assert found.is_predicted[:, row].tolist() == [word != last for word in here[:4]]


def test_an_epoch_predicts_every_token_and_one_marker_per_sentence_once():
    made = Streams(CORPUS.train, num_rows=1, window=CORPUS.train.num_symbols)
    assert made.steps_per_epoch == 1
    found = made.read(0)
    expected = CORPUS.train.num_tokens + CORPUS.train.num_sentences
    assert found.is_predicted.sum() == expected
    for direction, marker in ((0, 1), (1, 0)):
        targets = found.targets[direction][found.is_predicted]
        assert (targets == marker).sum() == CORPUS.train.num_sentences


def test_rows_can_be_read_in_parts():
    made = streams(4, 3)
    whole = made.read(2)
    for first in (0, 2):
        part = made.read(2, first_row=first, num_rows=2)
        for row in range(2):
            for direction in (0, 1):
                assert spelled(part, direction, row) == spelled(whole, direction, first + row)
        assert (part.targets == whole.targets[:, :, first : first + 2]).all()


def test_tokens_are_those_that_are_read_each_once():
    found = streams(2, 5).read(0)
    read = {name for d in (0, 1) for row in (0, 1) for name in spelled(found, d, row)}
    assert sorted(found.tokens) == sorted(read - {"<S>", "</S>"})


def test_an_empty_corpus_is_refused():
    with pytest.raises(DataError, match="no text to train on"):
        Streams(make_corpus("").train, num_rows=1, window=1)

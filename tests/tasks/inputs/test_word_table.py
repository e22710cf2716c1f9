from collections import Counter

import numpy as np
import pytest
import torch

from elmore.tasks.inputs.token_batch import NO_TOKEN, NUM_SPECIAL_ROWS, UNKNOWN, TokenBatcher
from elmore.tasks.inputs.word_table import WordTable, choose_words, learn_words
from elmore.text.word_vectors import WordVectors

VECTORS = WordVectors(
    words=("the", "bank", "of", "Seine", "river", "the"),
    vectors=np.arange(12, dtype=np.float32).reshape(6, 2) + 1,
)


@pytest.mark.parametrize("num_trained", [0, 3, 6])
def test_rows_are_looked_up_wherever_they_are(num_trained):
    vectors = torch.randn(6, 2)
    table = WordTable(vectors, num_trained=num_trained)
    rows = torch.tensor([[0, 1, 2], [3, 4, 5]])
    assert torch.equal(table(rows), vectors[rows])


@pytest.mark.parametrize("num_trained", [3, 6])
def test_only_trained_rows_learn_and_that_of_no_token_never(num_trained):
    table = WordTable(torch.randn(6, 2), num_trained=num_trained)
    table(torch.tensor([0, 0, 2, 4, 5])).sum().backward()
    touched = table.trained.grad.any(dim=1).nonzero().flatten().tolist()
    assert touched == [row for row in (2, 4, 5) if row < num_trained]
    assert [name for name, _ in table.named_parameters()] == ["trained"]


def test_a_table_that_does_not_learn_has_nothing_to_learn():
    table = WordTable(torch.randn(6, 2), num_trained=0)
    assert not any(weight.requires_grad for weight in table.parameters())


def test_words_of_training_come_first_and_learn():
    counts = Counter(["The", "Seine", "unheard", "the"])
    chosen = choose_words(counts, VECTORS, max_words=3)
    assert chosen.words == ["the", "Seine", "bank", "of"]
    assert chosen.num_trained == NUM_SPECIAL_ROWS + 2
    assert chosen.vectors[NUM_SPECIAL_ROWS:].tolist() == [[1, 2], [7, 8], [3, 4], [5, 6]]
    assert not chosen.vectors[:NUM_SPECIAL_ROWS].any()
    batcher = TokenBatcher(words=chosen.words)
    found = [batcher.find_row(token) for token in ("THE", "Seine", "seine", "of", "river")]
    assert found == [2, 3, UNKNOWN, 5, UNKNOWN]


def test_of_a_word_given_twice_the_first_vector_counts():
    chosen = choose_words(Counter(["the"]), VECTORS, max_words=6)
    row = TokenBatcher(words=chosen.words).find_row("the")
    assert chosen.vectors[row].tolist() == [1, 2]


def test_no_words_of_the_file_need_be_kept():
    chosen = choose_words(Counter(["unheard"]), VECTORS, max_words=0)
    assert chosen.words == []
    assert chosen.vectors.shape == (NUM_SPECIAL_ROWS, 2)


def test_frequent_words_get_a_vector_to_learn():
    torch.manual_seed(1)
    chosen = learn_words(Counter({"b": 2, "rare": 1, "a": 5}), dim=3, min_count=2)
    assert chosen.words == ["a", "b"]
    assert chosen.num_trained == len(chosen.vectors) == 4
    assert not chosen.vectors[NO_TOKEN].any()
    assert chosen.vectors[1:].any(dim=1).all()


def test_words_that_no_line_of_a_file_holds_are_unknown_ones():
    odd = ["a\nb", "a\r", "\ud800x"]
    assert learn_words(Counter(["a", *odd]), dim=3, min_count=1).words == ["a"]
    vectors = WordVectors(words=("a", *odd), vectors=np.ones((4, 2), dtype=np.float32))
    assert choose_words(Counter(odd), vectors, max_words=9).words == ["a"]

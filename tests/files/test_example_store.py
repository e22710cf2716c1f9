import errno
import random
import tempfile
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

from elmore.errors import DataError
from elmore.files import example_store
from elmore.files.example_store import EXAMPLES_IN_BLOCK, ExampleStore
from elmore.tasks.data.columns import TaggedSentence


@dataclass(frozen=True)
class Asked:
    """A question that shares its paragraph with others."""

    paragraph: tuple[str, ...]
    question: str


def make_examples(number):
    draw = random.Random(0)
    for place in range(number):
        tokens = [f"{place}:{draw.random()}" for _ in range(draw.randrange(1, 9))]
        yield TaggedSentence(tokens=tokens, tags=["O"] * len(tokens))


def count_tokens(example):
    return len(example.tokens)


@pytest.mark.parametrize("number", [0, 1, EXAMPLES_IN_BLOCK, EXAMPLES_IN_BLOCK * 20 + 1])
def test_a_store_is_the_list_of_its_examples(number):
    examples = list(make_examples(number))
    store = ExampleStore(make_examples(number), count_tokens=count_tokens)
    assert len(store) == number
    assert list(store) == examples
    assert store.lengths.dtype == np.int32
    assert store.lengths.tolist() == [count_tokens(example) for example in examples]
    places = random.Random(1).choices(range(-number, number), k=200) if number else []
    assert [store[place] for place in places] == [examples[place] for place in places]


@pytest.mark.parametrize("place", [3, -4, 100])
def test_a_place_outside_is_named(place):
    with pytest.raises(IndexError, match=f"no example {place}; the store has 3"):
        ExampleStore(make_examples(3), count_tokens=count_tokens)[place]


def test_numbers_of_numpy_are_places_slices_and_fractions_are_not():
    store = ExampleStore(make_examples(9), count_tokens=count_tokens)
    assert store[np.int64(7)] == list(make_examples(9))[7]
    for place in (slice(2, 4), 1.0):
        with pytest.raises(TypeError):
            store[place]


def test_what_neighbours_share_is_stored_once():
    paragraph = tuple(f"token{place}" for place in range(1_000))
    num_questions = EXAMPLES_IN_BLOCK * 5
    questions = [Asked(paragraph, f"question {number}") for number in range(num_questions)]
    alone = ExampleStore(questions[:1], count_tokens=lambda _: 1).num_bytes
    store = ExampleStore(questions, count_tokens=lambda _: 1)
    assert store.num_bytes < alone * 5 * 1.1
    assert list(store) == questions
    assert store[0].paragraph is store[1].paragraph


@pytest.mark.slow
def test_memory_is_some_bytes_an_example_read_or_not():
    """The examples are made as they are read, so that only what stays is counted."""
    number = 20_000
    tracemalloc.start()
    store = ExampleStore(make_examples(number), count_tokens=count_tokens)
    kept, _ = tracemalloc.get_traced_memory()
    assert sum(count_tokens(example) for example in store) == store.lengths.sum()
    kept_of_read, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert store.num_bytes > 100 * number
    assert kept < 16 * number
    assert kept_of_read < 32 * number


def test_threads_read_what_they_ask_for():
    examples = list(make_examples(300))
    store = ExampleStore(examples, count_tokens=count_tokens)
    places = random.Random(2).choices(range(300), k=2_000)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(store.__getitem__, places)) == [examples[place] for place in places]


def test_the_file_has_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = ExampleStore(make_examples(50), count_tokens=count_tokens)
    assert list(tmp_path.iterdir()) == []
    assert len(list(store)) == 50


@pytest.mark.parametrize("is_noticed_late", [False, True])
def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch, is_noticed_late):
    class FullFile:
        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def write(self, content):
            if not is_noticed_late:
                self.flush()

        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(example_store.tempfile, "TemporaryFile", FullFile)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(DataError, match=f"cannot write {tmp_path}: .* full; free some space"):
        ExampleStore(make_examples(5), count_tokens=count_tokens)


def test_what_the_reader_complains_of_is_not_blamed_on_the_disk():
    def read():
        yield from make_examples(EXAMPLES_IN_BLOCK)
        raise DataError("text, line 7: no tag")

    with pytest.raises(DataError, match=r"^text, line 7: no tag$"):
        ExampleStore(read(), count_tokens=count_tokens)

"""A vector depends on its sentence and the model, on nothing else: the same bits in any company."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.embed.embedder import Embedder
from tests import tiny

SENTENCE = ["the", "bank", "of", "a", "río", "🙂"]
CONFIGS = {
    "bytes": tiny.byte_config(),
    "word_and_char": tiny.word_and_char_config(),
    "no_projection": tiny.byte_config(has_projection=False, cell_dim=5),
    "wide": tiny.byte_config(cell_dim=40, output_dim=17, num_layers=3),
}
sentences = st.lists(
    st.lists(st.text("abcä我🙂 ", max_size=9), max_size=12), min_size=1, max_size=25
)


@pytest.fixture(params=CONFIGS, scope="module")
def model(request):
    return tiny.model(CONFIGS[request.param])


def one_by_one(model, sentences):
    """Embed each sentence in a call, batch and cache of its own."""
    return [
        Embedder(model, cache_size=0).embed([sentence], layers="all")[0] for sentence in sentences
    ]


def assert_same_bits(found, wanted):
    assert len(found) == len(wanted)
    for left, right in zip(found, wanted, strict=True):
        assert left.dtype == right.dtype == np.float32
        assert left.tobytes() == right.tobytes()
        assert left.shape == right.shape


@settings(max_examples=15, deadline=None)
@given(sentences, st.integers(1, 60), st.integers(0, 5), st.randoms())
def test_batches_order_and_cache_change_no_bit(model, sentences, budget, cache_size, shuffler):
    wanted = one_by_one(model, sentences)
    embedder = Embedder(model, tokens_per_batch=budget, cache_size=cache_size)
    assert_same_bits(embedder.embed(sentences, layers="all"), wanted)
    order = list(range(len(sentences)))
    shuffler.shuffle(order)
    shuffled = embedder.embed(
        [sentences[place] for place in order], layers="all"
    )  # now with a warm cache
    assert_same_bits(shuffled, [wanted[place] for place in order])


def test_what_was_embedded_before_changes_no_bit(model):
    embedder = Embedder(model)
    first = embedder.embed([SENTENCE], layers="all")
    embedder.embed([[f"w{n}" for n in range(50)], SENTENCE[::-1]], layers="all")
    assert_same_bits(embedder.embed([SENTENCE], layers="all"), first)


def test_the_number_of_threads_changes_no_bit(model):
    company = [[f"w{n % 7}"] * n for n in range(1, 40)]
    before = torch.get_num_threads()
    results = []
    try:
        for num_threads in (1, 2, 4):
            torch.set_num_threads(num_threads)
            results.append(Embedder(model).embed([SENTENCE, *company], layers="all"))
    finally:
        torch.set_num_threads(before)
    assert_same_bits(results[1], results[0])
    assert_same_bits(results[2], results[0])


def test_every_way_of_asking_gives_the_same_bits(model):
    embedder = Embedder(model)
    wanted = one_by_one(model, [SENTENCE, [], ["x"]])
    asked = [SENTENCE, [], ["x"]]
    assert_same_bits(list(embedder.stream(iter(asked), layers="all")), wanted)
    for layer in range(3):
        assert_same_bits(embedder.embed(asked, layers=layer), [array[layer] for array in wanted])
    mean = embedder.embed(asked)
    assert_same_bits(embedder.embed(asked[:1]), mean[:1])


@pytest.mark.parametrize("dim", [64, 128])
def test_a_model_of_ordinary_width_is_steady_too(dim):
    """Kernels change with size, so one model has the widths of real ones."""
    config = tiny.byte_config(cell_dim=4 * dim, output_dim=dim)
    model = tiny.model(config, scale=0.05)
    shuffler = random.Random(dim)
    sentences = [
        [shuffler.choice(["a", "bank", "river", "of"]) for _ in range(shuffler.randint(1, 40))]
        for _ in range(60)
    ]
    together = Embedder(model).embed(sentences, layers="all")
    assert_same_bits(together[::7], one_by_one(model, sentences[::7]))

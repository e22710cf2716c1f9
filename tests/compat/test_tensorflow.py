"""Programs that run bilm-tf with placeholders and a session get the numbers of the formulas."""

import numpy as np
import pytest

from elmore.compat import tensorflow as tf
from elmore.compat.bilm import Batcher, BidirectionalLanguageModel, weight_layers
from tests.compat.old_models import OldModel, assert_close

CONTEXT = [["The", "bank", "of"], ["a"]]
QUESTION = [["b", "c"]]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return OldModel(tmp_path_factory.mktemp("compat") / "model")


@pytest.fixture
def graph(old):
    """Return two placeholders, and what a model computes of them."""
    bilm = BidirectionalLanguageModel(old.options, old.weights)
    context, question = (tf.placeholder(tf.int32, shape=(None, None, 50)) for _ in range(2))
    assert bilm(context) is bilm(context)
    return context, bilm(context), question, bilm(question)


def test_each_placeholder_carries_its_own_state(old, graph):
    context, context_ops, question, question_ops = graph
    with tf.variable_scope("", reuse=True):
        first = weight_layers("input", context_ops, l2_coef=0.0)["weighted_op"]
        second = weight_layers("input", question_ops, use_top_only=True)["weighted_op"]
    batcher = Batcher(None, 50)
    feed = {
        context: batcher.batch_sentences(CONTEXT),
        question: batcher.batch_sentences(QUESTION),
    }
    contexts, questions = old.expected([CONTEXT] * 2), old.expected([QUESTION] * 2)
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    for _ in range(2):  # a new session starts over
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            for run in range(2):
                found = session.run([first, second, context_ops], feed_dict=feed)
                assert_close(found[0][0], contexts[run][0].mean(axis=0))
                assert_close(found[1][0], questions[run][0][-1])
                assert_close(found[2]["lm_embeddings"][1, :, :1], contexts[run][1])
                assert found[2]["mask"].tolist() == [[True] * 3, [True, False, False]]


def test_the_initializer_resets_states(graph):
    context, ops, _, _ = graph
    feed = {context: Batcher(None, 50).batch_sentences(CONTEXT)}
    session = tf.Session()
    first, second = (session.run(ops["lm_embeddings"], feed) for _ in range(2))
    session.run(tf.global_variables_initializer())
    assert not np.allclose(first, second)
    assert np.array_equal(session.run(ops["lm_embeddings"], feed), first)


def test_a_placeholder_without_a_value_is_named(graph):
    _, ops, _, _ = graph
    with pytest.raises(ValueError, match=r"no value was fed .* \(None, None, 50\)"):
        tf.Session().run(ops["mask"])

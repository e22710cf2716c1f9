"""Elmore's trainer and the plain one, on one corpus: what is compared must be comparable."""

import random

import pytest
from torch.testing import assert_close

from benchmarks.pretraining_parts import Case, ElmoreRun, PlainRun, find_learning_rate
from elmore.corpus.sample import sample_documents
from elmore.lm.settings import OptimizerSettings, read_settings
from tests.corpus.memory_corpus import make_corpus

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")


def make_case(*, dropout: float = 0.0, **optimizer) -> Case:
    draw = random.Random(0)
    words = ["a", "bad", "cafe", "deed", "egg", "fed", "gab", "hag", "bead", "cab", "dad", "ace"]
    lines = [" ".join(draw.choices(words, k=draw.randint(1, 7))) for _ in range(60)]
    settings = {
        "model": {
            "lstm": {"num_layers": 2, "cell_dim": 12, "output_dim": 5},
            "characters": {
                "max_chars": 9,
                "embedding_dim": 3,
                "filters": [[1, 2], [2, 3], [3, 4]],
                "num_highway_layers": 2,
            },
        },
        "softmax": {"kind": "sampled", "num_negatives": 6},
        "optimizer": optimizer,
        "training": {"rows": 4, "window": 5, "dropout": dropout, "max_steps": 8},
    }
    corpus = make_corpus("\n".join(lines[:50]), "\n".join(lines[50:]), vocabulary=None)
    return Case(read_settings(settings), corpus)


@pytest.mark.parametrize(
    "optimizer",
    [
        {"max_gradient_norm": 2.0},  # shorter than some of the gradients
        {
            "name": "adamw",
            "learning_rate": 0.01,
            "warmup_steps": 3,
            "final_share": 0.1,
            "weight_decay": 0.1,
        },
    ],
)
def test_without_dropout_both_trainers_go_the_same_way(optimizer):
    case = make_case(**optimizer)
    ours, plain = ElmoreRun(case), PlainRun(case)
    for _ in range(8):
        ours_step, plain_step = ours.step(), plain.step()
        assert plain_step.num_predictions == ours_step.num_predictions
        assert_close(plain_step.loss, ours_step.loss, atol=1e-4, rtol=0)
    documents = sample_documents(case.corpus.heldout, max_tokens=30)
    ours_totals, plain_totals = ours.measure(documents), plain.measure(documents)
    assert plain_totals.num_predictions == ours_totals.num_predictions > 0
    assert_close(plain_totals.perplexity, ours_totals.perplexity, atol=0, rtol=1e-3)


def test_the_rate_rises_and_falls_in_straight_lines():
    settings = OptimizerSettings(learning_rate=1.0, warmup_steps=2, final_share=0.5)
    rates = [find_learning_rate(settings, step, num_steps=10) for step in range(11)]
    assert rates[:3] == [0.5, 1.0, 1.0]
    assert rates[6:] == [0.75, 0.6875, 0.625, 0.5625, 0.5]


def test_steps_are_counted_from_tokens():
    case = make_case().lasting(200)
    run = ElmoreRun(case)
    num_tokens = sum(run.step().num_predictions for _ in range(run.trainer.num_steps))
    assert num_tokens == pytest.approx(200, rel=0.1)

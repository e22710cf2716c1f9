import pytest
import torch
from torch.testing import assert_close

from elmore.tasks.networks.pair_scores import DISTANCES, UNKNOWN_SPEAKER, PairScorer

NUM_SPANS, SPAN_DIM = 70, 5


def make_scorer(*, dropout=0.0):
    torch.manual_seed(0)
    return PairScorer(span_dim=SPAN_DIM, hidden_dim=7, dropout=dropout)


def score_slowly(scorer, vectors, speakers, i, j):
    """Score span j before span i, from one long vector."""
    matrix = torch.cat([scorer.span.weight, scorer.antecedent.weight, scorer.product.weight], dim=1)
    distance = max(number for number, least in enumerate(DISTANCES) if i - j >= least)
    relation = 0 if 0 in (speakers[i], speakers[j]) else 1 if speakers[i] == speakers[j] else 2
    hidden = matrix @ torch.cat([vectors[i], vectors[j], vectors[i] * vectors[j]])
    hidden = hidden + scorer.span.bias + scorer.distance.weight[distance]
    hidden = (hidden + scorer.speakers.weight[relation]).relu()
    return scorer.top[2].weight[0] @ hidden + scorer.top[2].bias[0]


def test_scores_are_those_of_one_long_vector():
    scorer = make_scorer()
    vectors = torch.randn(NUM_SPANS, SPAN_DIM)
    speakers = torch.randint(3, (NUM_SPANS,))
    antecedents = (torch.arange(NUM_SPANS).unsqueeze(1) - torch.arange(1, NUM_SPANS)).clamp(min=0)
    found = scorer(vectors, antecedents, speakers)
    assert found.shape == antecedents.shape
    for i in range(1, NUM_SPANS):
        for column in {*range(0, i, 7), i - 1}:
            j = int(antecedents[i, column])
            assert_close(found[i, column], score_slowly(scorer, vectors, speakers.tolist(), i, j))


@pytest.mark.parametrize(
    ("speakers", "relation"),
    [
        ((1, 1), 1),
        ((1, 2), 2),
        ((UNKNOWN_SPEAKER, UNKNOWN_SPEAKER), 0),
        ((UNKNOWN_SPEAKER, 1), 0),
        ((1, UNKNOWN_SPEAKER), 0),
    ],
)
def test_an_unknown_speaker_is_not_a_speaker(speakers, relation):
    scorer = make_scorer()
    rows = []
    scorer.speakers.register_forward_pre_hook(lambda _, given: rows.append(given[0]))
    scorer(torch.randn(2, SPAN_DIM), torch.tensor([[1], [0]]), torch.tensor(speakers))
    assert rows[0].flatten().tolist() == [relation, relation]


def test_what_is_not_before_a_span_has_a_score_anyway():
    """It fills a row up, and is masked by who asked for it."""
    found = make_scorer()(torch.randn(3, SPAN_DIM), torch.tensor([[2]] * 3), torch.zeros(3).long())
    assert found.isfinite().all()


def test_gradients_reach_every_weight_and_both_spans():
    scorer = make_scorer()
    vectors = torch.randn(3, SPAN_DIM, requires_grad=True)
    scorer(vectors, torch.tensor([[1], [0], [1]]), torch.tensor([1, 2, 1]))[2].sum().backward()
    assert vectors.grad.abs().sum(dim=1).gt(0).tolist() == [False, True, True]
    for name, weights in scorer.named_parameters():
        assert weights.grad.abs().sum() > 0, name


def test_dropout_thins_the_hidden_layer_in_training_only():
    scorer = make_scorer(dropout=0.5)
    case = torch.randn(4, SPAN_DIM), torch.tensor([[0]] * 4), torch.zeros(4).long()
    assert not torch.equal(scorer(*case), scorer(*case))
    scorer.eval()
    assert torch.equal(scorer(*case), scorer(*case))

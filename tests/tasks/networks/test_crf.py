import math
from itertools import pairwise, product

import pytest
import torch

from elmore.tasks.metrics.tag_schemes import TagScheme
from elmore.tasks.networks.crf import CRF, decode_best
from elmore.tasks.networks.tag_rules import TagRules, find_transitions

LENGTHS = [4, 1, 3, 2]
LENGTH_3 = torch.tensor([3])
LABELS = ["O", "B-A", "I-A", "B-B", "I-B"]


def make_rules():
    """Forbid some steps of each kind."""
    return find_transitions(LABELS, scheme=TagScheme.IOB2)


def make_case(rules=None, *, seed=0, num_labels=5):
    """Return a CRF and four sentences' scores, with large numbers behind their ends."""
    torch.manual_seed(seed)
    crf = CRF(num_labels=num_labels, rules=rules)
    for weights in crf.parameters():
        torch.nn.init.normal_(weights)
    scores = torch.randn(len(LENGTHS), max(LENGTHS), num_labels)
    for row, length in enumerate(LENGTHS):
        scores[row, length:] = 50 * torch.randn(max(LENGTHS) - length, num_labels)
    return crf, scores, torch.tensor(LENGTHS)


def list_taggings(crf, scores):
    """Return every allowed tagging of a sentence (T, K) with what it scores, one by one."""
    starts, transitions, ends, may_start, may_follow, may_end, tags = (
        each.tolist()
        for each in (*crf.parameters(), crf.may_start, crf.may_follow, crf.may_end, scores)
    )
    taggings = {}
    for tagging in product(range(scores.shape[1]), repeat=len(scores)):
        total = starts[tagging[0]] + ends[tagging[-1]]
        is_allowed = may_start[tagging[0]] and may_end[tagging[-1]]
        for place, label in enumerate(tagging):
            total += tags[place][label]
        for before, after in pairwise(tagging):
            total += transitions[before][after]
            is_allowed = is_allowed and may_follow[before][after]
        if is_allowed:
            taggings[tagging] = total
    return taggings


@pytest.mark.parametrize("has_rules", [False, True])
def test_probabilities_and_the_best_are_those_of_all_taggings_counted(has_rules):
    crf, scores, lengths = make_case(make_rules() if has_rules else None)
    found = crf.decode(scores, lengths)
    for row, length in enumerate(LENGTHS):
        taggings = list_taggings(crf, scores[row, :length])
        assert len(taggings) < 5**length or not has_rules
        assert tuple(found[row]) == max(taggings, key=taggings.__getitem__)
        log_sum = math.log(sum(map(math.exp, taggings.values())))
        for tagging in list(taggings)[:: max(1, len(taggings) // 9)]:
            labels = torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.int64)
            labels[row, :length] = torch.tensor(tagging)
            likelihood = crf.log_likelihood(scores, labels, lengths)[row].item()
            assert likelihood == pytest.approx(taggings[tagging] - log_sum, abs=2e-5)


def test_ends_only_forbidden_and_starts_only_forbidden_are_respected():
    everything = torch.ones(3, dtype=torch.bool)
    no_first = torch.tensor([False, True, True])
    for rules in (
        TagRules(starts=no_first, follows=everything.expand(3, 3), ends=everything),
        TagRules(starts=everything, follows=everything.expand(3, 3), ends=no_first),
    ):
        crf = CRF(num_labels=3, rules=rules)
        scores = torch.zeros(1, 2, 3)
        scores[..., 0] = 5.0
        place = 0 if rules.starts is no_first else 1
        assert [label == 0 for label in crf.decode(scores, torch.tensor([2]))[0]] == [
            place == 1,
            place == 0,
        ]
        wrong = crf.log_likelihood(scores, torch.tensor([[0, 0]]), torch.tensor([2]))
        assert wrong.item() < -1000


def test_probabilities_of_all_allowed_taggings_add_up_to_1():
    crf, scores, _ = make_case(make_rules())
    taggings = list(list_taggings(crf, scores[0]))
    likelihoods = crf.log_likelihood(
        scores[:1].expand(len(taggings), -1, -1),
        torch.tensor(taggings),
        torch.full((len(taggings),), 4),
    )
    assert likelihoods.exp().sum().item() == pytest.approx(1, abs=1e-5)


def test_what_is_behind_the_end_changes_nothing():
    crf, scores, lengths = make_case(make_rules())
    labels = torch.tensor([[0, 1, 2, 0], [3, 4, 4, 4], [1, 2, 2, 1], [0, 0, 2, 4]])
    together = crf.log_likelihood(scores, labels, lengths)
    for row, length in enumerate(LENGTHS):
        mine = slice(row, row + 1), slice(0, length)
        alone = crf.log_likelihood(scores[mine], labels[mine], lengths[mine[0]])
        torch.testing.assert_close(alone[0], together[row])
        assert crf.decode(scores[mine], lengths[mine[0]])[0] == crf.decode(scores, lengths)[row]
    # The gradients neither: those behind an end are 0, and all are numbers.
    scores.requires_grad_()
    crf.log_likelihood(scores, labels, lengths).sum().backward()
    behind = torch.arange(4) >= lengths[:, None]
    assert (scores.grad[behind] == 0).all()
    assert (scores.grad[~behind] != 0).any(dim=-1).all()
    for weights in crf.parameters():
        assert weights.grad.isfinite().all()
        assert (weights.grad != 0).any()


def test_gradients_are_numbers_where_a_label_cannot_be_reached():
    crf = CRF(num_labels=2, rules=find_transitions(["O", "I-A"], scheme=TagScheme.IOB2))
    scores = torch.zeros(1, 3, 2, requires_grad=True)
    likelihoods = crf.log_likelihood(scores, torch.zeros(1, 3, dtype=torch.int64), LENGTH_3)
    likelihoods.sum().backward()
    assert likelihoods.item() == 0  # there is no other tagging
    assert all(each.grad.isfinite().all() for each in (scores, *crf.parameters()))


def test_gradients_are_expected_counts():
    """What the scores' gradient must be: 1 at the tag given, less each tag's probability."""
    crf, scores, lengths = make_case(make_rules())
    labels = torch.tensor([[0, 1, 2, 0]])
    scores = scores[:1].clone().requires_grad_()
    crf.log_likelihood(scores, labels, lengths[:1]).sum().backward()
    taggings = list_taggings(crf, scores[0])
    total = sum(map(math.exp, taggings.values()))
    for place, label in product(range(4), range(5)):
        probability = sum(math.exp(taggings[each]) for each in taggings if each[place] == label)
        wanted = (labels[0, place] == label).item() - probability / total
        assert scores.grad[0, place, label].item() == pytest.approx(wanted, abs=1e-5)


def test_the_best_without_learned_steps():
    """As roles use it: rules and nothing else."""
    scores = torch.zeros(2, 3, 5)
    scores[:, 0, LABELS.index("B-A")] = 1.0
    scores[:, 1, LABELS.index("I-B")] = 3.0  # would need a B-B before
    scores[:, 1, LABELS.index("I-A")] = 1.5
    scores[:, 2, LABELS.index("O")] = 1.0
    found = decode_best(scores, torch.tensor([3, 2]), **make_rules().as_scores())
    assert [[LABELS[label] for label in tagging] for tagging in found] == [
        ["B-B", "I-B", "O"],
        ["B-B", "I-B"],
    ]


def test_where_all_is_forbidden_there_is_an_answer_yet():
    no = torch.full((2,), -torch.inf)
    steps = {"transitions": torch.zeros(2, 2), "starts": no, "ends": no}
    assert len(decode_best(torch.zeros(1, 3, 2), torch.tensor([3]), **steps)[0]) == 3


def test_rules_for_other_labels_are_refused():
    with pytest.raises(ValueError, match="expected rules for 4 labels, got 5"):
        CRF(num_labels=4, rules=make_rules())

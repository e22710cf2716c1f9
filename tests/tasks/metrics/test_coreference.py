import sys
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.errors import MissingExtraError
from elmore.tasks.metrics.coreference import CoreferenceScore, score_clusters

pytest.importorskip("scipy", reason="CEAF needs elmore[tasks]")

# Thirteen mentions of a document, as spans.
SPANS = {letter: (place, place + 2) for place, letter in enumerate("abcdefghixyzB")}


def clusters(text):
    """Make clusters of spans of `ab c`."""
    return [[SPANS[letter] for letter in cluster] for cluster in text.split()]


def rates(counts):
    return counts.recall, counts.precision, counts.f1


def slow_f1(recall, precision):
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def slow_muc(gold, predicted):
    """Vilain et al.: a cluster lacks a link for each cut that the other side makes in it."""

    def found_and_all(clusters, others):
        found = total = 0
        for cluster in clusters:
            pieces = {next((i for i, o in enumerate(others) if m in o), m) for m in cluster}
            found += len(cluster) - len(pieces)
            total += len(cluster) - 1
        return found, total

    return *found_and_all(gold, predicted), *found_and_all(predicted, gold)


def slow_b_cubed(gold, predicted):
    """Bagga and Baldwin: mention by mention, how much of its cluster is in its other cluster."""

    def found_and_all(clusters, others):
        found = total = 0
        for cluster in clusters:
            for mention in cluster:
                other = next((other for other in others if mention in other), [])
                found += len(set(cluster) & set(other)) / len(cluster)
                total += 1
        return found, total

    return *found_and_all(gold, predicted), *found_and_all(predicted, gold)


def slow_ceaf(gold, predicted):
    """Luo: the best of all alignments, by trying all of them."""
    few, many = sorted([gold, predicted], key=len)
    best = max(
        sum(
            2 * len(set(one) & set(other)) / (len(one) + len(other))
            for one, other in zip(few, order, strict=False)
        )
        for order in permutations(many, len(few))
    )
    return best, len(gold), best, len(predicted)


def slow_rates(found_gold, num_gold, found_predicted, num_predicted):
    recall = found_gold / num_gold if num_gold else 0.0
    precision = found_predicted / num_predicted if num_predicted else 0.0
    return recall, precision, slow_f1(recall, precision)


# Recall and precision. The last example is that of Pradhan et al. (2014), the others are among the
# test cases of the reference scorer (TC-A to TC-N), all worked out from the definitions:
# MUC links found / links; B-cubed sum of overlap^2 / size; CEAF sum of 2 * overlap / both sizes.
@pytest.mark.parametrize(
    ("gold", "predicted", "muc", "b_cubed", "ceaf"),
    [
        ("a bc def", "a bc def", (3 / 3, 3 / 3), (6 / 6, 6 / 6), (3 / 3, 3 / 3)),
        ("a bc def", "a de", (1 / 3, 1 / 1), (7 / 18, 3 / 3), (1.8 / 3, 1.8 / 2)),
        (
            "a bc def",
            "a bcx defy z",
            (3 / 3, 3 / 5),
            (6 / 6, (1 + 4 / 3 + 9 / 4) / 9),
            ((1 + 4 / 5 + 6 / 7) / 3, (1 + 4 / 5 + 6 / 7) / 4),
        ),
        (
            "a bc def",
            "a bcx dy z",
            (1 / 3, 1 / 3),
            ((3 + 1 / 3) / 6, (1 + 4 / 3 + 1 / 2) / 7),
            (2.2 / 3, 2.2 / 4),
        ),
        (
            "a bc def",
            "a bcxB dy z",
            (1 / 3, 1 / 4),
            ((3 + 1 / 3) / 6, 2.5 / 8),
            ((1 + 4 / 6 + 2 / 5) / 3, (1 + 4 / 6 + 2 / 5) / 4),
        ),
        ("a bc def", "a b c d e f", (0, 0), (3 / 6, 6 / 6), ((1 + 2 / 3 + 2 / 4) / 3, 13 / 36)),
        ("a bc def", "abcdef", (3 / 3, 3 / 5), (6 / 6, 14 / 36), (6 / 9 / 3, 6 / 9)),
        ("a bc def", "axycdez", (1 / 3, 1 / 6), (17 / 36, 6 / 49), (4 / 10 / 3, 4 / 10)),
        ("abcd", "ab cd", (2 / 3, 2 / 2), (8 / 16, 4 / 4), (4 / 6, 4 / 6 / 2)),
        ("abc", "ac", (1 / 2, 1 / 1), (4 / 9, 2 / 2), (4 / 5, 4 / 5)),
        ("a b c d e f", "a b c d e f", (0, 0), (1, 1), (1, 1)),
        (
            "abc defg",
            "ab cd fgh",
            (2 / 5, 2 / 4),
            ((5 / 3 + 5 / 4) / 7, (2 + 1 + 4 / 3) / 7),
            ((4 / 5 + 4 / 7) / 2, (4 / 5 + 4 / 7) / 3),
        ),
        (
            "abc defg",
            "ab cd fghi",
            (2 / 5, 2 / 5),
            ((5 / 3 + 5 / 4) / 7, (2 + 1 + 1) / 8),
            ((4 / 5 + 4 / 8) / 2, (4 / 5 + 4 / 8) / 3),
        ),
    ],
)
def test_scores_worked_by_hand(gold, predicted, muc, b_cubed, ceaf):
    score = score_clusters(clusters(gold), clusters(predicted))
    assert rates(score.muc) == pytest.approx((*muc, slow_f1(*muc)))
    assert rates(score.b_cubed) == pytest.approx((*b_cubed, slow_f1(*b_cubed)))
    assert rates(score.ceaf) == pytest.approx((*ceaf, slow_f1(*ceaf)))
    mean = (slow_f1(*muc) + slow_f1(*b_cubed) + slow_f1(*ceaf)) / 3
    assert score.mean_f1 == pytest.approx(mean)


PARTITIONS = st.lists(st.sampled_from("abcdefghixyz"), unique=True, max_size=9).flatmap(
    lambda letters: st.lists(st.integers(0, 4), min_size=len(letters), max_size=len(letters)).map(
        lambda numbers: [
            [SPANS[letter] for letter, other in zip(letters, numbers, strict=True) if other == n]
            for n in sorted(set(numbers))
        ]
    )
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(gold=PARTITIONS, predicted=PARTITIONS)
def test_random_clusters_score_as_the_definitions_say(gold, predicted):
    score = score_clusters(gold, predicted)
    assert rates(score.muc) == pytest.approx(slow_rates(*slow_muc(gold, predicted)))
    assert rates(score.b_cubed) == pytest.approx(slow_rates(*slow_b_cubed(gold, predicted)))
    assert rates(score.ceaf) == pytest.approx(slow_rates(*slow_ceaf(gold, predicted)))
    mentions = [{mention for cluster in side for mention in cluster} for side in (gold, predicted)]
    num_common = len(mentions[0] & mentions[1])
    wanted = slow_rates(num_common, len(mentions[0]), num_common, len(mentions[1]))
    assert rates(score.mentions) == pytest.approx(wanted)


@settings(max_examples=50, deadline=None)
@given(gold=PARTITIONS, predicted=PARTITIONS)
def test_without_singletons_is_as_if_they_had_not_been_given(gold, predicted):
    larger = [[cluster for cluster in side if len(cluster) > 1] for side in (gold, predicted)]
    assert score_clusters(gold, predicted, keep_singletons=False) == score_clusters(*larger)


def test_counts_are_added_over_documents_before_dividing():
    documents = [("abc defg", "ab cd fghi"), ("a bc def", "a de"), ("ab", ""), ("", "xy z")]
    scores = [score_clusters(clusters(gold), clusters(guess)) for gold, guess in documents]
    total = sum(scores, start=CoreferenceScore())
    assert rates(total.muc) == pytest.approx(slow_rates(2 + 1, 5 + 3 + 1, 2 + 1, 5 + 1 + 1))
    found = 5 / 3 + 5 / 4 + 7 / 3
    assert rates(total.b_cubed) == pytest.approx(slow_rates(found, 7 + 6 + 2, 4 + 3, 8 + 3 + 3))
    alike = 4 / 5 + 4 / 8 + 1 + 4 / 5
    assert rates(total.ceaf) == pytest.approx(slow_rates(alike, 2 + 3 + 1, alike, 3 + 2 + 2))
    assert rates(total.mentions) == pytest.approx(slow_rates(6 + 3, 7 + 6 + 2, 6 + 3, 8 + 3 + 3))


def test_a_gold_mention_counts_only_where_it_is_predicted_first():
    # TC-A-7 and TC-A-9 of the reference scorer: repeating b does not buy precision.
    once = score_clusters(clusters("a bc def"), clusters("a bcx dy z"))
    for predicted in ("a bcxb dy z", "a bcx dy bbbbbbbbbbz", "a bcx dy z b"):
        assert score_clusters(clusters("a bc def"), clusters(predicted)) == once


def test_other_mentions_are_counted_as_often_as_they_are_predicted():
    # x is in no gold cluster; B-cubed has 6 predicted mentions, 2 links are right out of 4.
    score = score_clusters(clusters("abc"), clusters("abcx xy"))
    assert rates(score.muc) == pytest.approx(slow_rates(2, 2, 2, 4))
    assert rates(score.b_cubed) == pytest.approx(slow_rates(3, 3, 9 / 4, 6))
    assert rates(score.mentions) == pytest.approx(slow_rates(3, 3, 3, 5))


def test_a_mention_in_two_gold_clusters_belongs_to_the_last_but_makes_both_alike():
    score = score_clusters(clusters("ab bcd"), clusters("abc"))
    assert rates(score.muc) == pytest.approx(slow_rates(1, 3, 1, 2))  # b-c, out of a-b, b-c, c-d
    # a shares {ab} with {abc}; b and c share {bc} of {bcd}.
    assert rates(score.b_cubed) == pytest.approx(slow_rates(1 + 2 / 3 + 2 / 3, 5, 3 * 2 / 3, 3))
    assert rates(score.ceaf) == pytest.approx(slow_rates(4 / 5, 2, 4 / 5, 1))
    assert rates(score.mentions) == pytest.approx(slow_rates(3, 4, 3, 3))


@pytest.mark.parametrize(("gold", "predicted"), [("", ""), ("ab c", ""), ("", "ab c")])
def test_nothing_on_one_side_is_a_score_of_nothing(gold, predicted):
    score = score_clusters(clusters(gold), clusters(predicted))
    for counts in (score.mentions, score.muc, score.b_cubed, score.ceaf):
        assert rates(counts) == (0.0, 0.0, 0.0)
    assert score.mean_f1 == 0.0


def test_clusters_may_be_sets_and_empty_ones_do_not_count():
    gold = [frozenset(cluster) for cluster in clusters("abc defg")]
    predicted = [set(), *map(set, clusters("ab cd fghi")), set()]
    wanted = score_clusters(clusters("abc defg"), clusters("ab cd fghi"))
    assert score_clusters([frozenset(), *gold], predicted) == wanted


def test_without_scipy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(MissingExtraError, match=r"elmore\[tasks\]"):
        score_clusters(clusters("ab"), clusters("ab"))

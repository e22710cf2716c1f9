import pytest

from elmore.tasks.metrics.accuracy import Accuracy, score_labels


def test_equal_labels_are_counted_position_by_position():
    score = score_labels(["neutral", "yes", "no", "yes"], ["yes", "yes", "no", "neutral"])
    assert score == Accuracy(num_correct=2, num_labels=4)
    assert score.share == 0.5


def test_batches_of_any_size_add_up_to_the_whole():
    gold, predicted = [0, 1, 2, 3, 4], [0, 0, 2, 2, 4]
    parts = [score_labels(gold[:1], predicted[:1]), score_labels(gold[1:], predicted[1:])]
    assert sum(parts, start=Accuracy()) == score_labels(gold, predicted)


def test_no_labels_are_not_an_error():
    assert score_labels([], []).share == 0.0


def test_labels_without_a_partner_are_refused():
    with pytest.raises(ValueError, match="expected 2 predicted labels, got 1"):
        score_labels(["a", "b"], ["a"])

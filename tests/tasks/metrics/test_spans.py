from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.errors import DataError
from elmore.tasks.metrics.spans import SpanCounts, SpanScore, score_spans, score_tags
from elmore.tasks.metrics.tag_schemes import Span, read_spans

# Where conlleval's tables say that a chunk starts or ends between two tags of one type. A change
# of type starts a chunk unless the second tag is O, and ends one unless the first is.
STARTS = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")}
ENDS = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}


class SlowConlleval:
    """Token by token and two tags at a time, with one flag, as conlleval goes through a file."""

    def __init__(self):
        self.gold, self.predicted, self.correct = Counter(), Counter(), Counter()

    @staticmethod
    def starts(before, now):
        return (before[0], now[0]) in STARTS or (now[0] != "O" and before[1] != now[1])

    @staticmethod
    def ends(before, now):
        return (before[0], now[0]) in ENDS or (before[0] != "O" and before[1] != now[1])

    def read(self, gold_tags, predicted_tags):
        is_correct_so_far = False
        last_gold = last_predicted = ("O", "")
        for tags in [*zip(gold_tags, predicted_tags, strict=True), ("O", "O")]:
            gold, predicted = (tuple((tag + "-").split("-", 1)) for tag in tags)
            gold, predicted = (
                (letter, kind.removesuffix("-")) for letter, kind in (gold, predicted)
            )
            ends = self.ends(last_gold, gold), self.ends(last_predicted, predicted)
            if is_correct_so_far and any(ends):
                if all(ends) and last_gold[1] == last_predicted[1]:
                    self.correct[last_gold[1]] += 1
                is_correct_so_far = False
            starts = self.starts(last_gold, gold), self.starts(last_predicted, predicted)
            self.gold[gold[1]] += starts[0]
            self.predicted[predicted[1]] += starts[1]
            if all(starts) and gold[1] == predicted[1]:
                is_correct_so_far = True
            last_gold, last_predicted = gold, predicted

    def counts(self, kind):
        return self.gold[kind], self.predicted[kind], self.correct[kind]


IOB_TAGS = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", "B-C-X", "I-C-X", "B", "I"])
TAG_PAIRS = st.lists(st.tuples(IOB_TAGS, IOB_TAGS), max_size=12)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(sentences=st.lists(TAG_PAIRS, max_size=3))
def test_random_tags_are_counted_as_conlleval_counts_them(sentences):
    slow, score = SlowConlleval(), SpanScore()
    for pairs in sentences:
        gold, predicted = [gold for gold, _ in pairs], [predicted for _, predicted in pairs]
        slow.read(gold, predicted)
        score += score_tags(gold, predicted)
    for kind in ("X", "Y", "C-X", ""):
        got = score.by_type.get(kind, SpanCounts())
        assert (got.num_gold, got.num_predicted, got.num_correct) == slow.counts(kind)
    total = score.total
    assert total.num_correct == slow.correct.total()
    assert total.num_gold == slow.gold.total()
    assert total.num_predicted == slow.predicted.total()


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("", []),
        ("O O", []),
        ("I-PER", ["0 1 PER"]),
        ("O I-PER I-PER", ["1 3 PER"]),  # IOB1, or IOB2 without its beginning
        ("I-PER B-PER", ["0 1 PER", "1 2 PER"]),
        ("B-PER B-PER", ["0 1 PER", "1 2 PER"]),
        ("B-PER I-LOC I-LOC", ["0 1 PER", "1 3 LOC"]),
        ("I-PER I-LOC I-PER", ["0 1 PER", "1 2 LOC", "2 3 PER"]),
        ("B-PER O I-PER", ["0 1 PER", "2 3 PER"]),
        ("B-C-ARG1 I-C-ARG1 B-ARG1", ["0 2 C-ARG1", "2 3 ARG1"]),
        ("B I O I B", ["0 2 ", "3 4 ", "4 5 "]),
        ("S-PER S-PER", ["0 1 PER", "1 2 PER"]),
        ("B-PER E-PER B-PER E-PER", ["0 2 PER", "2 4 PER"]),
        ("B-PER I-PER L-PER U-PER", ["0 3 PER", "3 4 PER"]),
        ("E-PER I-PER O", ["0 1 PER", "1 2 PER"]),
        ("B-PER I-PER", ["0 2 PER"]),  # BIOES without its end
        ("B-PER E-LOC", ["0 1 PER", "1 2 LOC"]),
        ("B-PER S-PER I-PER", ["0 1 PER", "1 2 PER", "2 3 PER"]),
    ],
)
def test_whatever_is_tagged_is_read(tags, spans):
    read = [f"{span.start} {span.end} {span.type}" for span in read_spans(tags.split())]
    assert read == spans


def test_scores_worked_by_hand():
    gold = ["B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC", "I-LOC", "B-LOC"]
    predicted = ["B-PER", "I-PER", "O", "I-LOC", "O", "B-LOC", "I-LOC", "I-LOC"]
    score = score_tags(gold, predicted)
    assert dict(score.by_type) == {
        "LOC": SpanCounts(num_gold=3, num_predicted=2, num_correct=1),
        "PER": SpanCounts(num_gold=1, num_predicted=1, num_correct=1),
    }
    assert score.total.precision == pytest.approx(2 / 3)
    assert score.total.recall == pytest.approx(2 / 4)
    assert score.total.f1 == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))


def test_the_type_and_both_ends_must_be_right():
    gold = [Span(1, 3, "PER")]
    for wrong in (Span(1, 3, "LOC"), Span(1, 2, "PER"), Span(0, 3, "PER"), Span(1, 4, "PER")):
        assert score_spans(gold, [wrong]).total == SpanCounts(num_gold=1, num_predicted=1)
    assert score_spans(gold, [Span(1, 3, "PER")] * 2).total == SpanCounts(
        num_gold=1, num_predicted=1, num_correct=1
    )


def test_of_nothing_everything_is_zero():
    for gold, predicted in (("O", "O"), ("B-X", "O"), ("O", "B-X")):
        total = score_tags([gold], [predicted]).total
        assert (total.precision, total.recall, total.f1) == (0.0, 0.0, 0.0)
    assert SpanScore().total.f1 == 0.0


def test_counts_are_added_over_sentences_and_types_before_dividing():
    first = score_tags(["B-X", "O"], ["B-X", "B-Y"])
    second = score_tags(["B-Z", "B-X"], ["O", "B-X"])
    total = sum([first, second], start=SpanScore())
    assert list(total.by_type) == ["X", "Y", "Z"]
    assert total.by_type["X"] == SpanCounts(num_gold=2, num_predicted=2, num_correct=2)
    assert total.total == SpanCounts(num_gold=3, num_predicted=3, num_correct=2)


@pytest.mark.parametrize("tag", ["PER", "-PER", "", "b-PER", "X-PER", "BI-PER", "NN"])
def test_tags_of_no_scheme_are_refused_even_in_predictions(tag):
    with pytest.raises(DataError, match="predicted, token 2"):
        score_tags(["O", "O"], ["O", tag])


def test_tags_without_a_partner_are_refused():
    with pytest.raises(ValueError, match="expected 2 predicted tags, got 1"):
        score_tags(["O", "O"], ["O"])

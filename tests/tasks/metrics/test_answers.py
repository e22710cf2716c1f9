import pytest

from elmore.errors import DataError
from elmore.tasks.metrics.answers import (
    AnswerScore,
    normalize_answer,
    score_answer,
    score_answers,
    token_f1,
)


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("Denver Broncos", "denver broncos"),
        ("  The\tDenver \n Broncos. ", "denver broncos"),
        ("the", ""),
        ("", ""),
        ("!?", ""),
        # Articles are words, not letters in one; and punctuation goes first.
        ("A theory an analyst the-", "theory analyst"),
        ("Theatre", "theatre"),
        ("A.", ""),
        ("an-other", "another"),
        ("the_end", "theend"),
        ("$5,000.50", "500050"),
        ("rock'n'roll", "rocknroll"),
        # Punctuation beyond ASCII is kept, and an article next to it is removed.
        ("1990–91", "1990–91"),
        ("“Émile”", "“émile”"),
        ("The ‘A–Z’", "‘ –z’"),
        ("50 000", "50 000"),  # a no-break space is a space
        ("ÉCOLE", "école"),
        ("a á", "á"),
    ],
)
def test_answers_are_compared_without_case_punctuation_articles_and_spaces(text, normalized):
    assert normalize_answer(text) == normalized


@pytest.mark.parametrize(
    ("gold", "predicted", "wanted"),
    [
        ("Denver Broncos", "the Denver Broncos", 1.0),
        ("Denver Broncos", "Broncos", 2 * 1 * 0.5 / 1.5),
        ("Denver Broncos", "Denver", 2 * 1 * 0.5 / 1.5),
        ("Broncos Denver", "Denver Broncos", 1.0),  # order does not count
        ("Denver", "Boston", 0.0),
        # Repeated tokens: two of them in common, of 3 predicted and 2 gold.
        ("New York New", "New New", 2 * 1 * (2 / 3) / (1 + 2 / 3)),
        # One in common, though predicted three times.
        ("New York", "new new new", 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2)),
        ("Denver", "", 0.0),
        ("the", "", 0.0),
        ("the", "the", 0.0),
    ],
)
def test_f1_of_tokens_worked_by_hand(gold, predicted, wanted):
    assert token_f1(gold, predicted) == pytest.approx(wanted)
    assert token_f1(predicted, gold) == pytest.approx(wanted)


def test_answers_of_which_nothing_is_left_match_but_have_no_f1():
    assert score_answer(["The"], "a") == AnswerScore(num_questions=1, num_exact=1, f1_sum=0.0)


def test_the_gold_answer_that_fits_best_counts():
    score = score_answer(["Santa Clara, California", "Levi's Stadium", "Santa Clara"], "levis")
    assert score.num_exact == 0
    assert score.f1_sum == pytest.approx(2 / 3)
    # Each measure has its own maximum; of equals nothing is added twice.
    assert score_answer(["a", "a", "Levi's"], "levis") == AnswerScore(
        num_questions=1, num_exact=1, f1_sum=1.0
    )


def test_averages_are_percent_of_all_questions_and_a_missing_answer_gets_nothing():
    gold = {"q1": ["gold"], "q2": ["Denver Broncos", "Broncos"], "q3": ["1990 91"], "q4": ["x"]}
    predicted = {"q1": "Gold!", "q2": "Denver", "q4": "y", "unasked": "x"}
    score = score_answers(gold, predicted)
    assert score.num_questions == 4
    assert score.exact_percent == pytest.approx(100 * 1 / 4)
    assert score.f1_percent == pytest.approx(100 * (1 + 2 / 3) / 4)


def test_scores_of_parts_add_up_to_the_whole():
    gold = {str(number): ["one two", "three"] for number in range(6)}
    predicted = dict(zip(gold, ["one", "three", "", "one two", "two three", "four"], strict=True))
    parts = [
        score_answers({name: gold[name] for name in names}, predicted)
        for names in (["0"], ["1", "2", "3"], [], ["4", "5"])
    ]
    assert sum(parts, start=AnswerScore()) == score_answers(gold, predicted)


def test_no_questions_are_not_an_error_but_a_question_without_answers_is():
    assert (score_answers({}, {}).exact_percent, score_answers({}, {}).f1_percent) == (0.0, 0.0)
    with pytest.raises(DataError, match="question 'q7' has no gold answer"):
        score_answers({"q7": []}, {"q7": "x"})

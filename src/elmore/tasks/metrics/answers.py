"""Exact match and F1 of answers to questions, as SQuAD 1.1's own script counts them."""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from elmore.errors import DataError
from elmore.tasks.metrics.ratios import divide, f1

# Only ASCII: a dash or quotation mark beyond it stays in the answer, as in SQuAD's script.
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerScore:
    """Sums over questions; what is reported is their mean."""

    num_questions: int = 0
    num_exact: int = 0
    f1_sum: float = 0.0

    def __add__(self, other: "AnswerScore") -> "AnswerScore":
        return AnswerScore(
            num_questions=self.num_questions + other.num_questions,
            num_exact=self.num_exact + other.num_exact,
            f1_sum=self.f1_sum + other.f1_sum,
        )

    @property
    def exact_percent(self) -> float:
        """Exact match (EM), from 0 to 100."""
        return 100 * divide(self.num_exact, self.num_questions)

    @property
    def f1_percent(self) -> float:
        """The mean over questions of each one's F1, from 0 to 100."""
        return 100 * divide(self.f1_sum, self.num_questions)


def score_answers(gold: Mapping[str, Sequence[str]], predicted: Mapping[str, str]) -> AnswerScore:
    """Score the answers to the questions of `gold`, by their ids; one without an answer gets 0."""
    total = AnswerScore()
    for question, answers in gold.items():
        if not answers:
            raise DataError(
                f"question {question!r} has no gold answer to compare with; SQuAD 1.1 gives each "
                "question one or more: leave out those that cannot be answered"
            )
        if question in predicted:
            total += score_answer(answers, predicted[question])
        else:
            total += AnswerScore(num_questions=1)
    return total


def score_answer(gold: Sequence[str], predicted: str) -> AnswerScore:
    """Score one answer against whichever gold answer fits best, for each measure by itself."""
    return AnswerScore(
        num_questions=1,
        num_exact=int(any(is_exact(answer, predicted) for answer in gold)),
        f1_sum=max(token_f1(answer, predicted) for answer in gold),
    )


def is_exact(gold: str, predicted: str) -> bool:
    """Whether two answers are the same once normalised."""
    return normalize_answer(gold) == normalize_answer(predicted)


def token_f1(gold: str, predicted: str) -> float:
    """Return the F1 of the normalised answers' tokens, a token counted as often as it is in both.

    Two answers of which nothing is left are an exact match with an F1 of 0: so SQuAD 1.1 has it.
    """
    gold_tokens = normalize_answer(gold).split()
    predicted_tokens = normalize_answer(predicted).split()
    num_common = (Counter(gold_tokens) & Counter(predicted_tokens)).total()
    return f1(divide(num_common, len(predicted_tokens)), divide(num_common, len(gold_tokens)))


def normalize_answer(text: str) -> str:
    """Leave out case, punctuation, articles and the width of spaces, in this order.

    >>> normalize_answer("The  U.S.A. (a state)")
    'usa state'
    """
    plain = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", plain).split())

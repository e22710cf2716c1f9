"""Exact match and F1 of answers to questions, computed as by SQuAD 1.1's own script."""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from elmore.errors import DataError
from elmore.tasks.metrics.ratios import divide, f1

# ASCII only: as in SQuAD's script, other dashes and quotation marks stay in the answer.
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerScore:
    """Sums over questions; the reported scores are means."""

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
        """The mean F1 of the questions, from 0 to 100."""
        return 100 * divide(self.f1_sum, self.num_questions)


def score_answers(gold: Mapping[str, Sequence[str]], predicted: Mapping[str, str]) -> AnswerScore:
    """Score answers by question id; a question in `gold` without a predicted answer gets 0."""
    total = AnswerScore()
    for question, answers in gold.items():
        if not answers:
            raise DataError(
                f"question {question!r} has no gold answer; leave out unanswerable questions, "
                "which SQuAD 1.1 does not have"
            )
        if question in predicted:
            total += score_answer(answers, predicted[question])
        else:
            total += AnswerScore(num_questions=1)
    return total


def score_answer(gold: Sequence[str], predicted: str) -> AnswerScore:
    """Score one answer against the best-matching gold answer, separately for each metric."""
    return AnswerScore(
        num_questions=1,
        num_exact=int(any(is_exact(answer, predicted) for answer in gold)),
        f1_sum=max(token_f1(answer, predicted) for answer in gold),
    )


def is_exact(gold: str, predicted: str) -> bool:
    """Return whether two answers are the same after normalization."""
    return normalize_answer(gold) == normalize_answer(predicted)


def token_f1(gold: str, predicted: str) -> float:
    """Return the F1 of the normalized answers' tokens, counting repeated tokens.

    As in SQuAD 1.1, answers that are both empty after normalization match but have F1 0.
    """
    gold_tokens = normalize_answer(gold).split()
    predicted_tokens = normalize_answer(predicted).split()
    num_common = (Counter(gold_tokens) & Counter(predicted_tokens)).total()
    return f1(divide(num_common, len(predicted_tokens)), divide(num_common, len(gold_tokens)))


def normalize_answer(text: str) -> str:
    """Lowercase a text, then remove punctuation, articles and extra spaces.

    >>> normalize_answer("The  U.S.A. (a state)")
    'usa state'
    """
    plain = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", plain).split())

"""Shared code of the tasks that predict one label per text or pair of texts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from elmore.config import MAX_DIM
from elmore.errors import DataError
from elmore.settings import check_range, check_share, read_choice
from elmore.tasks.data.lines import shorten
from elmore.tasks.kinds.plain_inputs import is_list, is_text, refuse_input
from elmore.tasks.metrics.accuracy import find_largest_share, score_labels
from elmore.tasks.networks.label_choice import NO_NUMBER, GoldLabels, Probabilities, best_label
from elmore.tasks.task import Labels, Scores, Sentences
from elmore.text.language import Language
from elmore.text.tokens import split_tokens

# With more labels than this, the label column probably holds texts.
MAX_LABELS = 1000


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """The size of the network, and how texts are read."""

    hidden_dim: int = 100
    """Per LSTM direction."""
    dropout: float = 0.3
    max_tokens: int = 400
    """Longer texts are truncated, because memory grows with the square of the length."""
    language: Language = Language.EN
    """For splitting texts into tokens."""

    def __post_init__(self) -> None:
        """Convert strings from TOML, and check all values."""
        language = read_choice("task.language", self.language, Language)
        object.__setattr__(self, "language", language)
        check_range("task.hidden_dim", self.hidden_dim, 1, MAX_DIM)
        check_range("task.max_tokens", self.max_tokens, 1, 100_000)
        check_share("task.dropout", self.dropout)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassExample:
    """One text or a pair, as written and as tokens."""

    texts: tuple[str, ...]
    sentences: tuple[tuple[str, ...], ...]  # the tokens of each text
    label: str | None  # None if it is to be predicted


def split_texts(
    *texts: str,
    label: str | None,
    language: Language = Language.EN,
    max_tokens: int | None = None,
) -> ClassExample:
    """Split texts, none of them blank, into at most `max_tokens` tokens each."""
    sentences = tuple(tuple(split_tokens(text, language=language)[:max_tokens]) for text in texts)
    return ClassExample(texts=texts, sentences=sentences, label=label)


def parse_text(given: Any, *, task: str, split: Callable[[str], ClassExample]) -> ClassExample:
    """Return an example from a string; an example is returned unchanged."""
    if isinstance(given, ClassExample) and len(given.texts) == 1:
        return given
    if not is_text(given):
        raise refuse_input(given, task=task, expected="a text: a string that is not blank")
    return split(given)


def parse_pair(given: Any, *, task: str, split: Callable[[str, str], ClassExample]) -> ClassExample:
    """Return an example from two strings; an example is returned unchanged."""
    if isinstance(given, ClassExample) and len(given.texts) == 2:
        return given
    if not (is_list(given) and len(given) == 2 and all(map(is_text, given))):
        expected = "a pair of texts, such as ('A man sleeps.', 'Nobody is awake.')"
        raise refuse_input(given, task=task, expected=expected)
    return split(*given)


def count_tokens(example: ClassExample) -> int:
    """Return the length of the text, or of both texts together."""
    return sum(len(sentence) for sentence in example.sentences)


def find_sentences(examples: Sequence[ClassExample]) -> tuple[Sentences, ...]:
    """Return the tokens of all first texts, and of all second texts if they are pairs."""
    roles = zip(*(example.sentences for example in examples), strict=True)
    return tuple(list(role) for role in roles)


def list_labels(example: ClassExample) -> tuple[str, ...]:
    """Return the label, if there is one."""
    return () if example.label is None else (example.label,)


def locate(example: ClassExample) -> str:
    """Return the text, or the first text of a pair."""
    return f"the text {shorten(example.texts[0])}"


def find_labels(examples: Iterable[ClassExample]) -> Labels:
    """Return the labels in alphabetical order; refuse a single label, or too many."""
    found = {example.label for example in examples if example.label is not None}
    labels = tuple(sorted(found))
    if len(labels) == 1:
        raise DataError(
            f"all training examples have the label {shorten(labels[0])}; give examples of at least "
            "two labels"
        )
    if len(labels) > MAX_LABELS:
        raise DataError(
            f"the training examples have {len(labels)} different labels, such as "
            f"{shorten(labels[0])}, but at most {MAX_LABELS} are allowed; if these are texts, name "
            "the file's columns in a first line"
        )
    return labels


def prepare(examples: Sequence[ClassExample], *, labels: Labels, with_gold: bool) -> GoldLabels:
    """Return the numbers of the gold labels, if `with_gold`."""
    if not with_gold:
        return GoldLabels(numbers=None)
    numbers = {label: number for number, label in enumerate(labels)}
    return GoldLabels(
        numbers=torch.tensor([numbers.get(example.label or "", NO_NUMBER) for example in examples])
    )


def score(examples: Sequence[ClassExample], predictions: Sequence[Probabilities]) -> Scores:
    """Return the accuracy in percent."""
    accuracy = score_labels(
        [example.label for example in examples], [best_label(found) for found in predictions]
    )
    return {"accuracy": 100 * accuracy.share}


def score_constant(examples: Sequence[ClassExample]) -> float:
    """Return the accuracy of always predicting the most frequent label, in percent."""
    return 100 * find_largest_share(example.label for example in examples)


def show(prediction: Probabilities) -> dict[str, Any]:
    """Return a prediction for JSON."""
    return {"label": best_label(prediction), "probabilities": prediction}

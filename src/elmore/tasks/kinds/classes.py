"""What the tasks have in common that choose one label: of a text, or of a pair of texts."""

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

# So many different labels are no labels: more likely the texts are in their column.
MAX_LABELS = 1000


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """The network's size, and how texts are read."""

    hidden_dim: int = 100
    """Of one direction of an LSTM."""
    dropout: float = 0.3
    max_tokens: int = 400
    """Of a text. What follows is not read: memory grows by the square of its length."""
    language: Language = Language.EN
    """Whose rules split a text into tokens."""

    def __post_init__(self) -> None:
        """Take strings from TOML, and refuse what cannot be."""
        language = read_choice("task.language", self.language, Language)
        object.__setattr__(self, "language", language)
        check_range("task.hidden_dim", self.hidden_dim, 1, MAX_DIM)
        check_range("task.max_tokens", self.max_tokens, 1, 100_000)
        check_share("task.dropout", self.dropout)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassExample:
    """One text or a pair, as written and in tokens."""

    texts: tuple[str, ...]
    sentences: tuple[tuple[str, ...], ...]  # the tokens of each text
    label: str | None  # None where it is to be predicted


def split_texts(
    *texts: str,
    label: str | None,
    language: Language = Language.EN,
    max_tokens: int | None = None,
) -> ClassExample:
    """Split texts, none of them blank, into their (first) tokens."""
    sentences = tuple(tuple(split_tokens(text, language=language)[:max_tokens]) for text in texts)
    return ClassExample(texts=texts, sentences=sentences, label=label)


def parse_text(given: Any, *, task: str, split: Callable[[str], ClassExample]) -> ClassExample:
    """Return an example of a string; one that is an example already is returned as it is."""
    if isinstance(given, ClassExample) and len(given.texts) == 1:
        return given
    if not is_text(given):
        raise refuse_input(given, task=task, expected="a text: a string that is not blank")
    return split(given)


def parse_pair(given: Any, *, task: str, split: Callable[[str, str], ClassExample]) -> ClassExample:
    """Return an example of two strings; one that is an example already is returned as it is."""
    if isinstance(given, ClassExample) and len(given.texts) == 2:
        return given
    if not (is_list(given) and len(given) == 2 and all(map(is_text, given))):
        expected = "a pair of texts, such as ('A man sleeps.', 'Nobody is awake.')"
        raise refuse_input(given, task=task, expected=expected)
    return split(*given)


def count_tokens(example: ClassExample) -> int:
    """Return the length of the text, or of both."""
    return sum(len(sentence) for sentence in example.sentences)


def find_sentences(examples: Sequence[ClassExample]) -> tuple[Sentences, ...]:
    """Return all first texts in tokens, then all second ones if they are pairs."""
    roles = zip(*(example.sentences for example in examples), strict=True)
    return tuple(list(role) for role in roles)


def list_labels(example: ClassExample) -> tuple[str, ...]:
    """Return the label, if it has one."""
    return () if example.label is None else (example.label,)


def locate(example: ClassExample) -> str:
    """Return the text, or the first of two."""
    return f"the text {shorten(example.texts[0])}"


def find_labels(examples: Iterable[ClassExample]) -> Labels:
    """Return the labels in alphabetical order; refuse what cannot be learned."""
    found = {example.label for example in examples if example.label is not None}
    labels = tuple(sorted(found))
    if len(labels) == 1:
        raise DataError(
            f"all training examples have the label {shorten(labels[0])}; give examples of two "
            "labels at least"
        )
    if len(labels) > MAX_LABELS:
        raise DataError(
            f"the training examples have {len(labels)} different labels, such as "
            f"{shorten(labels[0])}, and there may be {MAX_LABELS}; if these are texts, name the "
            "file's columns in a first line"
        )
    return labels


def prepare(examples: Sequence[ClassExample], *, labels: Labels, with_gold: bool) -> GoldLabels:
    """Return the labels by their numbers, if that is wanted."""
    if not with_gold:
        return GoldLabels(numbers=None)
    numbers = {label: number for number, label in enumerate(labels)}
    return GoldLabels(
        numbers=torch.tensor([numbers.get(example.label or "", NO_NUMBER) for example in examples])
    )


def score(examples: Sequence[ClassExample], predictions: Sequence[Probabilities]) -> Scores:
    """Return how many labels are right, in percent."""
    accuracy = score_labels(
        [example.label for example in examples], [best_label(found) for found in predictions]
    )
    return {"accuracy": 100 * accuracy.share}


def score_constant(examples: Sequence[ClassExample]) -> float:
    """Return the accuracy of the one label that is right most often, in percent."""
    return 100 * find_largest_share(example.label for example in examples)


def show(prediction: Probabilities) -> dict[str, Any]:
    """Return a prediction as JSON has it, behind its text."""
    return {"label": best_label(prediction), "probabilities": prediction}

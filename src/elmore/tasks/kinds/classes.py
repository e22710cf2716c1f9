"""Shared code of the tasks that predict one label per text or pair of texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from elmore.config import MAX_DIM
from elmore.errors import DataError
from elmore.settings import check_range, check_share, read_choice
from elmore.tasks.data.lines import quote
from elmore.tasks.metrics.accuracy import find_largest_share, score_labels
from elmore.tasks.networks.label_choice import NO_NUMBER, Probabilities, best_label
from elmore.tasks.task import Labels, Scores, Sentences, Task
from elmore.text.language import Language
from elmore.text.tokens import split_tokens

# With more labels than this, the label column probably holds texts.
MAX_LABELS = 1000


@dataclass(frozen=True, kw_only=True)
class ClassSettings:
    """The size of the network."""

    hidden_dim: int = 100
    """Per LSTM direction."""
    dropout: float = 0.3

    def __post_init__(self) -> None:
        """Check all values."""
        check_range("task.hidden_dim", self.hidden_dim, 1, MAX_DIM)
        check_share("task.dropout", self.dropout)


@dataclass(frozen=True, kw_only=True)
class TextSettings(ClassSettings):
    """The size of the network, and how texts are read."""

    max_tokens: int = 400
    """Longer texts are truncated, because memory grows with the square of the length."""
    language: Language = Language.EN
    """For splitting texts into tokens."""

    def __post_init__(self) -> None:
        """Convert strings from TOML, and check all values."""
        super().__post_init__()
        language = read_choice("task.language", self.language, Language)
        object.__setattr__(self, "language", language)
        check_range("task.max_tokens", self.max_tokens, 1, 100_000)


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


class ClassTask(Task):
    """Predicts the probability of each label; subclasses read examples and build the network."""

    main_score = "accuracy"

    def split(self, *texts: str, label: str | None = None) -> ClassExample:
        """Split texts into tokens, as the settings say."""
        settings = self.settings
        return split_texts(
            *texts, label=label, language=settings.language, max_tokens=settings.max_tokens
        )

    def find_sentences(self, examples: Sequence[ClassExample]) -> tuple[Sentences, ...]:
        """Return the tokens of all first texts, and of all second texts if they are pairs."""
        roles = zip(*(example.sentences for example in examples), strict=True)
        return tuple(list(role) for role in roles)

    def list_labels(self, example: ClassExample) -> tuple[str, ...]:
        """Return the label, if there is one."""
        return () if example.label is None else (example.label,)

    def find_labels(self, examples: Iterable[ClassExample]) -> Labels:
        """Return the labels in alphabetical order; refuse a single label, or too many."""
        labels = super().find_labels(examples)
        if len(labels) == 1:
            raise DataError(
                f"all training examples have the label {quote(labels[0])}; give examples of at "
                "least two labels"
            )
        if len(labels) > MAX_LABELS:
            raise DataError(
                f"the training examples have {len(labels)} different labels, such as "
                f"{quote(labels[0])}, but at most {MAX_LABELS} are allowed; if these are texts, "
                "name the file's columns in a first line"
            )
        return labels

    def locate(self, example: ClassExample) -> str:
        """Return the text, or the first text of a pair."""
        return f"the text {quote(example.texts[0])}"

    def prepare(
        self, examples: Sequence[ClassExample], *, labels: Labels, with_gold: bool
    ) -> Tensor | None:
        """Return the numbers of the gold labels, if `with_gold`."""
        if not with_gold:
            return None
        numbers = {label: number for number, label in enumerate(labels)}
        return torch.tensor([numbers.get(example.label or "", NO_NUMBER) for example in examples])

    def score(
        self, examples: Sequence[ClassExample], predictions: Sequence[Probabilities]
    ) -> Scores:
        """Return the accuracy in percent."""
        accuracy = score_labels(
            [example.label for example in examples], [best_label(found) for found in predictions]
        )
        return {"accuracy": 100 * accuracy.share}

    def score_constant(self, examples: Sequence[ClassExample]) -> float:
        """Return the accuracy of always predicting the most frequent label, in percent."""
        return 100 * find_largest_share(example.label for example in examples)


def show(prediction: Probabilities) -> dict[str, Any]:
    """Return a prediction for JSON."""
    return {"label": best_label(prediction), "probabilities": prediction}

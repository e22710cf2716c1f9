"""Split text to predict on as the training data is split: Chinese into characters."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from elmore.tasks.data.columns import is_han
from elmore.tasks.fit.settings import FitSettings
from elmore.text.language import Language

TAGGING_TASKS = ("entities", "tags")
# Even data with one character per token may have an emoji or a smiley of several.
MIN_SINGLE_SHARE, MIN_HAN_SHARE = 0.99, 0.5


def choose_language(
    settings: FitSettings, training_sentences: Iterable[Sequence[str]]
) -> FitSettings:
    """Return the settings; if the language is the default and does not fit, with zh-chars."""
    if settings.kind not in TAGGING_TASKS or settings.task["language"] != Language.EN:
        return settings
    if not has_chinese_characters(training_sentences):
        return settings
    return replace(settings, task={**settings.task, "language": str(Language.ZH_CHARS)})


def has_chinese_characters(sentences: Iterable[Sequence[str]]) -> bool:
    """Return whether the tokens are single characters, most of them Chinese.

    >>> has_chinese_characters([["我", "在", "北", "京"]]), has_chinese_characters([["我", "北京"]])
    (True, False)
    """
    num_tokens = num_single = num_han = 0
    for token in chain.from_iterable(sentences):
        num_tokens += 1
        num_single += len(token) == 1
        num_han += is_han(token[0])
    return num_single > MIN_SINGLE_SHARE * num_tokens and num_han > MIN_HAN_SHARE * num_tokens

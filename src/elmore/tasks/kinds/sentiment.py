"""Sentiment of sentences: the Stanford Sentiment Treebank (Socher et al., 2013).

There are five classes (SST-5), or two without neutral sentences (SST-2). Scores use the labels of
whole sentences. Training may use phrases too, as in McCann et al. (2017), who use those of four
tokens or more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from elmore.errors import ConfigError
from elmore.settings import check_range, read_choice
from elmore.tasks.data.file_forms import TREE, FileForm, reads
from elmore.tasks.data.lines import read_lines, refuse_none
from elmore.tasks.data.trees import SENTIMENT_LABELS, LabeledTree, read_trees
from elmore.tasks.kinds.classes import ClassExample, ClassSettings, split_texts
from elmore.tasks.kinds.texts import TextTask, read_plain_or_table
from elmore.tasks.task import Labels

# The names of the labels in trees; None is left out.
_NAMES: dict[int, tuple[str | None, ...]] = {
    5: ("very negative", "negative", "neutral", "positive", "very positive"),
    2: ("negative", "negative", None, "positive", "positive"),
}

EXPECTED = "one tree per line, such as (3 (2 Very) (4 good))"


class Phrases(StrEnum):
    """The examples used in training."""

    ROOT = "root"
    """Sentences."""
    ALL = "all"
    """Sentences and the phrases in them, about ten times as many."""


@dataclass(frozen=True, kw_only=True)
class SentimentSettings(ClassSettings):
    """The size of the network, and what is read from a tree."""

    classes: int = 5
    """5, or 2: negative and positive, without neutral sentences and phrases."""
    phrases: Phrases = Phrases.ROOT
    min_phrase_tokens: int = 4
    """Shorter phrases are not used in training; whole sentences always are."""

    def __post_init__(self) -> None:
        """Convert strings from TOML, and check all values."""
        super().__post_init__()
        object.__setattr__(self, "phrases", read_choice("task.phrases", self.phrases, Phrases))
        if self.classes not in _NAMES:
            raise ConfigError(f"task.classes is {self.classes!r:.60}; give 5 or 2")
        check_range("task.min_phrase_tokens", self.min_phrase_tokens, 1, 1000)


class SentimentTask(TextTask):
    """Predicts how positive or negative a sentence is."""

    name = "sentiment"

    def __init__(self, settings: SentimentSettings) -> None:
        super().__init__(settings)
        self._names = dict(zip(SENTIMENT_LABELS, _NAMES[settings.classes], strict=True))

    def split(self, *texts: str, label: str | None = None) -> ClassExample:
        """Split texts into tokens: English, and not truncated."""
        return split_texts(*texts, label=label)

    @reads(FileForm.TREES, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[ClassExample]:
        """Yield sentences with their labels."""
        return self._read(path, phrases=Phrases.ROOT)

    @reads(FileForm.TREES, expected=EXPECTED)
    def read_training(self, path: Path) -> Iterator[ClassExample]:
        """Yield sentences, each followed by its phrases if those are used in training."""
        return self._read(path, phrases=self.settings.phrases)

    @reads(FileForm.TREES, FileForm.TABLE, expected=f"text, or {EXPECTED}", takes_text=True)
    def read_unlabeled(self, path: Path) -> Iterator[ClassExample]:
        """Yield the sentences of trees, ignoring labels, or of text with one per line."""
        first = next((line for _, line in read_lines(path) if line.strip()), "")
        if TREE.match(first):
            for tree in read_trees(path):
                yield _make_example(tree.tokens, label=None)
        else:
            for text in read_plain_or_table(path):
                yield self.split(text)

    def find_labels(self, examples: Iterable[ClassExample]) -> Labels:
        """Return the labels that occur, from negative to positive."""
        found = super().find_labels(examples)
        return tuple(name for name in dict.fromkeys(self._names.values()) if name in found)

    def _read(self, path: Path, *, phrases: Phrases) -> Iterator[ClassExample]:
        trees = read_trees(path)
        examples = (example for tree in trees for example in self._read_tree(tree, phrases=phrases))
        complaint = f"{path} has only neutral sentences; set task.classes=5 to learn from them"
        return refuse_none(examples, complaint=complaint)

    def _read_tree(self, tree: LabeledTree, *, phrases: Phrases) -> Iterator[ClassExample]:
        whole, *parts = tree.spans
        if label := self._names[whole.label]:
            yield _make_example(tree.tokens, label=label)
        if phrases is Phrases.ALL:
            for span in parts:
                label = self._names[span.label]
                if label and span.end - span.start >= self.settings.min_phrase_tokens:
                    yield _make_example(tree.tokens[span.start : span.end], label=label)


def _make_example(tokens: tuple[str, ...], *, label: str | None) -> ClassExample:
    return ClassExample(texts=(" ".join(tokens),), sentences=(tokens,), label=label)

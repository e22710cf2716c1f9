"""Tagging: one tag per token, from CoNLL-U or a column; also the code shared with entities."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from elmore.config import MAX_DIM
from elmore.errors import ConfigError, DataError
from elmore.settings import check_range, check_share, read_choice
from elmore.tasks.data.columns import CONLLU_COLUMNS, TaggedSentence, read_columns, read_rows
from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.lines import has_suffix, quote
from elmore.tasks.data.untagged import UntaggedForm, read_untagged
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.plain_inputs import refuse_input, take_tokens
from elmore.tasks.metrics.accuracy import Accuracy, find_largest_share, score_labels
from elmore.tasks.metrics.spans import SpanScore, score_tags
from elmore.tasks.networks.tag_numbers import number_tags
from elmore.tasks.networks.tag_rules import TagRules
from elmore.tasks.networks.tagger import Tagger
from elmore.tasks.task import Labels, Scores, Sentences, Task
from elmore.text.language import Language

Tags = list[str]

FORMS = (FileForm.COLUMNS, FileForm.CONLLU)
EXPECTED = "CoNLL-U, or columns: one token per line with its tag, a blank line between sentences"
LAST_COLUMN = "last"


@dataclass(frozen=True, kw_only=True)
class TaggerSettings:
    """The column of the tags, and the size of the network."""

    column: str | int = LAST_COLUMN
    """upos, xpos or deprel for CoNLL-U; otherwise a column's number from 2, or "last"."""
    hidden_dim: int = 100
    """Per LSTM direction."""
    num_layers: int = 1
    dropout: float = 0.5
    uses_crf: bool = True
    text_form: UntaggedForm = UntaggedForm.AUTO
    """The format of files to predict on."""
    language: Language = Language.EN
    """For splitting raw text; entities are also joined with or without spaces.

    After training on Chinese data with one character per token, the default is zh-chars.
    """

    def __post_init__(self) -> None:
        """Convert strings from TOML, and check all values."""
        check_range("task.hidden_dim", self.hidden_dim, 1, MAX_DIM)
        check_range("task.num_layers", self.num_layers, 1, 100)
        check_share("task.dropout", self.dropout)
        form = read_choice("task.text_form", self.text_form, UntaggedForm)
        object.__setattr__(self, "text_form", form)
        language = read_choice("task.language", self.language, Language)
        object.__setattr__(self, "language", language)
        column = str(self.column)
        is_position = column.isascii() and column.isdigit() and int(column) >= 2
        if not (is_position or column in (LAST_COLUMN, *CONLLU_COLUMNS)):
            raise ConfigError(
                f"task.column is {column!r:.60}; give the number of the tags' column, from 2 "
                "(column 1 is the token), or one of: "
                f"{', '.join((LAST_COLUMN, *CONLLU_COLUMNS))}"
            )
        object.__setattr__(self, "column", column)


@dataclass(frozen=True, kw_only=True)
class TagSettings(TaggerSettings):
    """The column of the tags, the size of the network, and what is scored."""

    column: str | int = "upos"
    scores_spans: bool = False
    """Also score spans, if the tags mark spans such as chunks. To learn spans, see entities."""
    uses_crf: bool = False


class TagTask(Task):
    """Predicts tags independently, or jointly with a CRF."""

    name = "tags"
    main_score = "accuracy"

    @reads(*FORMS, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield a file's sentences with their tags."""
        column = resolve_column(path, self.settings.column)
        return read_columns(path, column=column, has_spans=self.settings.scores_spans)

    @reads(*FORMS, expected=f"text, or {EXPECTED}", takes_text=True)
    def read_unlabeled(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a text or of columns, without tags."""
        settings = self.settings
        return read_untagged(path, form=settings.text_form, language=settings.language)

    def parse(self, given: Any) -> TaggedSentence:
        """Return an example from a string or a list of tokens, or an example unchanged."""
        if isinstance(given, TaggedSentence):
            return given
        tokens = take_tokens(given, language=self.settings.language)
        if tokens is None:
            expected = "a sentence: a string that is not blank, or a list of tokens"
            raise refuse_input(given, task=self.name, expected=expected)
        return TaggedSentence(tokens=tokens, tags=[])

    def count_tokens(self, example: TaggedSentence) -> int:
        """Return the length of the sentence."""
        return len(example.tokens)

    def find_sentences(self, examples: Sequence[TaggedSentence]) -> tuple[Sentences, ...]:
        """Return the sentences, in one role."""
        return ([example.tokens for example in examples],)

    def list_labels(self, example: TaggedSentence) -> list[str]:
        """Return the tags."""
        return example.tags

    def locate(self, example: TaggedSentence) -> str:
        """Return the file and the line of the first token, or the words if there is no file."""
        if not example.lines:
            return super().locate(example)
        return f"{example.path}, the sentence from line {example.lines[0]:,}"

    def build(self, tokens: TokenInput, *, labels: Labels) -> Tagger:
        """Return an untrained tagger."""
        return self._build(
            tokens, labels, write=lambda numbers: [labels[number] for number in numbers]
        )

    def _build(
        self,
        tokens: TokenInput,
        tags: Labels,
        *,
        write: Callable[[list[int]], Tags],
        rules: TagRules | None = None,
    ) -> Tagger:
        return Tagger(
            tokens=tokens,
            num_labels=len(tags),
            write=write,
            hidden_dim=self.settings.hidden_dim,
            num_layers=self.settings.num_layers,
            dropout=self.settings.dropout,
            uses_crf=self.settings.uses_crf,
            rules=rules,
        )

    def prepare(
        self, examples: Sequence[TaggedSentence], *, labels: Labels, with_gold: bool
    ) -> Tensor | None:
        """Return the numbers of the gold tags, if `with_gold`."""
        tags = [example.tags for example in examples]
        return number_tags(tags, labels=labels) if with_gold else None

    def score(self, examples: Sequence[TaggedSentence], predictions: Sequence[Tags]) -> Scores:
        """Return the accuracy, and with `scores_spans` precision, recall and F1 of spans."""
        pairs = zip(examples, predictions, strict=True)
        right = sum((score_labels(example.tags, tags) for example, tags in pairs), Accuracy())
        spans = score_spans_of(examples, predictions) if self.settings.scores_spans else {}
        return {"accuracy": 100 * right.share, **spans}

    def score_constant(self, examples: Sequence[TaggedSentence]) -> float:
        """Return the accuracy of always predicting the most frequent tag, in percent."""
        return 100 * find_largest_share(tag for example in examples for tag in example.tags)

    def to_json(self, example: TaggedSentence, prediction: Tags) -> dict[str, Any]:
        """Return tokens and tags."""
        return {"tokens": list(example.tokens), "tags": list(prediction)}


def score_spans_of(examples: Iterable[TaggedSentence], predictions: Iterable[Tags]) -> Scores:
    """Return conlleval's scores of all spans and F1 by type, in percent."""
    pairs = zip(examples, predictions, strict=True)
    score = sum((score_tags(example.tags, tags) for example, tags in pairs), SpanScore())
    by_type = {f"f1 {name}": 100 * counts.f1 for name, counts in score.by_type.items()}
    return {**score.total.to_percent(), **by_type}


def resolve_column(path: Path, column: str | int) -> str | int:
    """Return `column`, or the number of a file's last column if it is "last"."""
    if column != LAST_COLUMN:
        return column
    if has_suffix(path, ".conllu"):
        raise ConfigError(
            f"{path} is CoNLL-U, whose last column has no tags; give a file with tags in its last "
            f"column, or set task.column to one of: {', '.join(CONLLU_COLUMNS)}"
        )
    for number, columns in read_rows(path):
        if len(columns) < 2:
            raise DataError(
                f"{path}, line {number}: expected a token and its tag, got one column "
                f"({quote(columns[0])}); give a file with one token per line and its tag last"
            )
        return len(columns)
    return 2  # the file is empty and will be refused when it is read

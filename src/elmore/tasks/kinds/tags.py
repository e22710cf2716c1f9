"""Tagging: one tag per token, from CoNLL-U or a column; also the code shared with entities."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmore.config import MAX_DIM
from elmore.errors import ConfigError, DataError
from elmore.settings import check_range, check_share, read_choice
from elmore.tasks.data.columns import CONLLU_COLUMNS, TaggedSentence, read_columns, read_rows
from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.lines import has_suffix, shorten
from elmore.tasks.data.untagged import UntaggedForm, read_untagged
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.plain_inputs import refuse_input, take_tokens
from elmore.tasks.metrics.accuracy import Accuracy, find_largest_share, score_labels
from elmore.tasks.metrics.spans import SpanScore, read_spans, score_tags
from elmore.tasks.networks.tag_numbers import number_tags
from elmore.tasks.networks.tagger import TagFeatures, Tagger
from elmore.tasks.task import Labels, Scores, Sentences
from elmore.text.language import Language

Tags = list[str]

FORMS = (FileForm.COLUMNS, FileForm.CONLLU)
EXPECTED = "CoNLL-U, or columns: one token per line with its tag, a blank line between sentences"
LAST_COLUMN = "last"


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """The column of the tags, and the size of the network."""

    column: str | int = "upos"
    """upos, xpos or deprel for CoNLL-U; otherwise a column's number from 2, or "last"."""
    scores_spans: bool = False
    """Also score spans, if the tags mark spans such as chunks. To learn spans, see entities."""
    hidden_dim: int = 100
    """Per LSTM direction."""
    num_layers: int = 1
    dropout: float = 0.5
    uses_crf: bool = False
    text_form: UntaggedForm = UntaggedForm.AUTO
    """The format of files to predict on."""
    language: Language = Language.EN
    """For splitting raw text."""

    def __post_init__(self) -> None:
        """Convert strings from TOML, and check all values."""
        check_tagger_settings(self)


def check_tagger_settings(settings: Any) -> None:
    """Check the settings that all taggers share, and convert them to their types."""
    check_range("task.hidden_dim", settings.hidden_dim, 1, MAX_DIM)
    check_range("task.num_layers", settings.num_layers, 1, 100)
    check_share("task.dropout", settings.dropout)
    form = read_choice("task.text_form", settings.text_form, UntaggedForm)
    object.__setattr__(settings, "text_form", form)
    language = read_choice("task.language", settings.language, Language)
    object.__setattr__(settings, "language", language)
    column = str(settings.column)
    is_position = column.isascii() and column.isdigit() and int(column) >= 2
    if not (is_position or column in (LAST_COLUMN, *CONLLU_COLUMNS)):
        raise ConfigError(
            f"task.column is {column!r:.60}; give the number of the tags' column, from 2 (column 1 "
            f"is the token), or one of: {', '.join((LAST_COLUMN, *CONLLU_COLUMNS))}"
        )
    object.__setattr__(settings, "column", column)


class TagTask:
    """Predicts tags independently, or jointly with a CRF."""

    name = "tags"
    main_score = "accuracy"

    def __init__(self, settings: TagSettings) -> None:
        self.settings = settings

    @reads(*FORMS, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield a file's sentences with their tags."""
        column = resolve_column(path, self.settings.column)
        has_spans = self.settings.scores_spans
        sentences = read_columns(path, column=column, has_spans=has_spans)
        yield from check_spans(sentences, path=path) if has_spans else sentences

    read_training = read

    @reads(*FORMS, expected=f"text, or {EXPECTED}", takes_text=True)
    def read_unlabelled(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a text or of columns, without tags."""
        settings = self.settings
        return read_untagged(path, form=settings.text_form, language=settings.language)

    def parse(self, given: Any) -> TaggedSentence:
        """Return an example from a string or a list of tokens, or an example unchanged."""
        return parse_sentence(given, task=self.name, language=self.settings.language)

    def count_tokens(self, example: TaggedSentence) -> int:
        """Return the length of the sentence."""
        return len(example.tokens)

    def find_sentences(self, examples: Sequence[TaggedSentence]) -> tuple[Sentences, ...]:
        """Return the sentences, in one role."""
        return ([example.tokens for example in examples],)

    def find_labels(self, examples: Iterable[TaggedSentence]) -> Labels:
        """Return all tags in the training data, sorted."""
        return tuple(sorted({tag for example in examples for tag in example.tags}))

    def list_labels(self, example: TaggedSentence) -> list[str]:
        """Return the tags."""
        return example.tags

    def locate(self, example: TaggedSentence) -> str:
        """Return the file and the line of its first token."""
        return locate_sentence(example)

    def build(self, tokens: TokenInput, *, labels: Labels) -> Tagger:
        """Return an untrained tagger."""
        return Tagger(
            tokens=tokens,
            num_labels=len(labels),
            write=lambda numbers: [labels[number] for number in numbers],
            hidden_dim=self.settings.hidden_dim,
            num_layers=self.settings.num_layers,
            dropout=self.settings.dropout,
            uses_crf=self.settings.uses_crf,
        )

    def prepare(
        self, examples: Sequence[TaggedSentence], *, labels: Labels, with_gold: bool
    ) -> TagFeatures:
        """Return the numbers of the gold tags, if `with_gold`."""
        if not with_gold:
            return TagFeatures(gold=None)
        tags = [example.tags for example in examples]
        return TagFeatures(gold=number_tags(tags, labels=labels))

    def score(self, examples: Sequence[TaggedSentence], predictions: Sequence[Tags]) -> Scores:
        """Return the accuracy, and with `scores_spans` precision, recall and F1 of spans."""
        pairs = list(zip(examples, predictions, strict=True))
        right = sum((score_labels(example.tags, tags) for example, tags in pairs), Accuracy())
        scores = {"accuracy": 100 * right.share}
        return scores | score_spans_of(pairs) if self.settings.scores_spans else scores

    def score_constant(self, examples: Sequence[TaggedSentence]) -> float:
        """Return the accuracy of always predicting the most frequent tag, in percent."""
        return 100 * find_largest_share(tag for example in examples for tag in example.tags)

    def to_json(self, example: TaggedSentence, prediction: Tags) -> dict[str, Any]:
        """Return tokens and tags."""
        return {"tokens": list(example.tokens), "tags": list(prediction)}


def parse_sentence(given: Any, *, task: str, language: Language) -> TaggedSentence:
    """Return a sentence without tags; an example is returned unchanged."""
    if isinstance(given, TaggedSentence):
        return given
    tokens = take_tokens(given, language=language)
    if tokens is None:
        expected = "a sentence: a string that is not blank, or a list of tokens"
        raise refuse_input(given, task=task, expected=expected)
    return TaggedSentence(tokens=tokens, tags=[])


def locate_sentence(sentence: TaggedSentence) -> str:
    """Return the file and line of the first token, or the words if there is no file."""
    if not sentence.lines:
        return f"the sentence {shorten(' '.join(sentence.tokens))}"
    return f"{sentence.path}, the sentence from line {sentence.lines[0]:,}"


def score_spans_of(pairs: Iterable[tuple[TaggedSentence, Tags]]) -> Scores:
    """Return conlleval's scores of all spans and F1 by type, in percent."""
    score = sum((score_tags(example.tags, tags) for example, tags in pairs), SpanScore())
    total = score.total
    by_type = {f"f1 {name}": 100 * counts.f1 for name, counts in score.by_type.items()}
    return {
        "f1": 100 * total.f1,
        "precision": 100 * total.precision,
        "recall": 100 * total.recall,
        **by_type,
    }


def check_spans(sentences: Iterable[TaggedSentence], *, path: Path) -> Iterator[TaggedSentence]:
    """Yield the sentences; raise a DataError for tags that cannot be scored, such as M-PER."""
    for sentence in sentences:
        read_spans(sentence.tags, where=f"{path}, the sentence from line {sentence.lines[0]}")
        yield sentence


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
                f"({shorten(columns[0])}); give a file with one token per line and its tag last"
            )
        return len(columns)
    return 2  # the file is empty and will be refused when it is read

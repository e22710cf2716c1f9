"""Question answering: find the answer to a question in a passage (SQuAD 1.1)."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from sys import intern
from typing import Any

import torch
from torch import Tensor

from elmore.config import MAX_DIM
from elmore.errors import DataError, DataWarning, warn_caller
from elmore.settings import check_range, check_share, read_choice
from elmore.tasks.data.answer_spans import Fit, Span, find_offsets
from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.lines import refuse_none
from elmore.tasks.data.questions import Paragraph, count_fits, read_paragraphs
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.plain_inputs import is_text, refuse_input
from elmore.tasks.metrics.answers import AnswerScore, score_answer
from elmore.tasks.networks.answer_finder import NO_SPAN, AnswerFinder, FoundSpan
from elmore.tasks.task import Labels, Scores, Sentences, Task
from elmore.text.sentences import split_sentences
from elmore.text.tokens import split_tokens

EXPECTED = "SQuAD's JSON: one document with articles under 'data'"


class GoldPlaces(StrEnum):
    """Which spans count as gold answers in training."""

    GIVEN = "given"
    """The annotated spans."""
    ANYWHERE = "anywhere"
    """All spans with the same tokens, for data with unreliable offsets."""


@dataclass(frozen=True, kw_only=True)
class QuestionSettings:
    """The size of the network, and the limits of its input."""

    hidden_dim: int = 64
    """Per LSTM direction."""
    dropout: float = 0.2
    max_answer_tokens: int = 17
    """For predicted answers; answers in training may be longer."""
    max_passage_tokens: int = 300
    """Passages are truncated to this length in training only."""
    max_question_tokens: int = 50
    """Questions are always truncated to this length."""
    gold_places: GoldPlaces = GoldPlaces.GIVEN

    def __post_init__(self) -> None:
        """Convert strings from TOML, and check all values."""
        places = read_choice("task.gold_places", self.gold_places, GoldPlaces)
        object.__setattr__(self, "gold_places", places)
        check_range("task.hidden_dim", self.hidden_dim, 1, MAX_DIM)
        for name in ("max_answer_tokens", "max_passage_tokens", "max_question_tokens"):
            check_range(f"task.{name}", getattr(self, name), 1, 1 << 20)
        check_share("task.dropout", self.dropout)


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """The text of one or more questions, which share it to save memory."""

    text: str
    tokens: tuple[str, ...]

    def cut(self, max_tokens: int) -> "Passage":
        """Return the first `max_tokens` tokens, or the passage itself if it is not longer."""
        is_long = len(self.tokens) > max_tokens
        return replace(self, tokens=self.tokens[:max_tokens]) if is_long else self

    def locate(self, start: int, end: int) -> Span:
        """Return the character span of tokens[start:end] in the text."""
        # Not stored, because offsets would take more memory than the rest of an example.
        offsets = find_offsets(self.text, self.tokens[:end])
        return offsets[start][0], offsets[-1][1]


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionExample:
    """A question, its passage and its gold answers."""

    name: str
    text: str
    tokens: tuple[str, ...]
    passage: Passage
    answers: tuple[str, ...]  # as written
    spans: tuple[Span, ...]  # distinct tokens[start:end] of the answers found in the passage


class QuestionTask(Task):
    """Finds answers with attention flow and self-attention (see `AnswerFinder`)."""

    name = "questions"
    main_score = "f1"

    @reads(FileForm.JSON, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[QuestionExample]:
        """Yield the questions of a file in SQuAD 1.1's JSON format."""
        return self._make_examples(read_paragraphs(path))

    @reads(FileForm.JSON, expected=EXPECTED)
    def read_unlabeled(self, path: Path) -> Iterator[QuestionExample]:
        """Yield the questions of a file in the same format, with or without answers."""
        return self._make_examples(read_paragraphs(path, needs_answers=False))

    @reads(FileForm.JSON, expected=EXPECTED)
    def read_training(self, path: Path) -> Iterator[QuestionExample]:
        """Yield questions with truncated passages."""
        most = self.settings.max_passage_tokens
        complaint = (
            f"{path}: no question has an answer within the first {most} tokens of its passage, so "
            "there is nothing to learn; raise task.max_passage_tokens, or check the answers"
        )
        examples = self._make_examples(_check_answers(path, read_paragraphs(path)))
        return refuse_none(cut_passages(examples, max_tokens=most), complaint=complaint)

    def parse(self, given: Any) -> QuestionExample:
        """Return an example from a mapping with question and context, or an example unchanged."""
        if isinstance(given, QuestionExample):
            return given
        found = given if isinstance(given, Mapping) else {}
        question, context = found.get("question", ""), found.get("context", "")
        if not (is_text(question) and is_text(context)):
            expected = "a dict with two texts, {'question': ..., 'context': ...}"
            raise refuse_input(given, task=self.name, expected=expected)
        tokens = split_tokens(question.strip())[: self.settings.max_question_tokens]
        sentences = map(split_tokens, split_sentences(context))
        return QuestionExample(
            name="",
            text=question,
            tokens=_share(tokens),
            passage=Passage(text=context, tokens=_share(chain.from_iterable(sentences))),
            answers=(),
            spans=(),
        )

    def count_tokens(self, example: QuestionExample) -> int:
        """Return the length of the passage; questions are short in comparison."""
        return len(example.passage.tokens)

    def find_sentences(self, examples: Sequence[QuestionExample]) -> tuple[Sentences, ...]:
        """Return passages, each as one long sentence, and questions."""
        return (
            [example.passage.tokens for example in examples],
            [example.tokens for example in examples],
        )

    def locate(self, example: QuestionExample) -> str:
        """Return the question's id."""
        return f"question {example.name}"

    def build(self, tokens: TokenInput, *, labels: Labels = ()) -> AnswerFinder:  # noqa: ARG002
        """Return an untrained network."""
        return AnswerFinder(
            tokens=tokens,
            hidden_dim=self.settings.hidden_dim,
            dropout=self.settings.dropout,
            max_answer_tokens=self.settings.max_answer_tokens,
        )

    def prepare(
        self,
        examples: Sequence[QuestionExample],
        *,
        labels: Labels = (),  # noqa: ARG002
        with_gold: bool,
    ) -> Tensor | None:
        """Return the spans of the gold answers, if `with_gold`."""
        if not with_gold:
            return None
        spans = [self._find_gold(example) for example in examples]
        num_spans = max(1, *(len(each) for each in spans))
        edges = torch.full((len(examples), num_spans, 2), NO_SPAN)
        for row, each in enumerate(spans):
            for column, (start, end) in enumerate(each):
                edges[row, column] = torch.tensor([start, end - 1])
        return edges

    def score(
        self, examples: Sequence[QuestionExample], predictions: Sequence[FoundSpan]
    ) -> Scores:
        """Return SQuAD's exact match and F1."""
        total = AnswerScore()
        for example, found in zip(examples, predictions, strict=True):
            if not example.answers:
                raise DataError(
                    f"question {example.name!r} has no gold answer, so it cannot be scored; give a "
                    "file with answers"
                )
            total += score_answer(example.answers, cut_answer(example, found))
        return {"exact": total.exact_percent, "f1": total.f1_percent}

    def to_json(self, example: QuestionExample, prediction: FoundSpan) -> dict[str, Any]:
        """Return an answer; `start` and `end` are character offsets in the passage's text."""
        start, end = example.passage.locate(prediction.start, prediction.end)
        return {
            "id": example.name,
            "question": example.text,
            "answer": example.passage.text[start:end],
            "start": start,
            "end": end,
            "probability": math.exp(prediction.log_probability),
        }

    def _make_examples(self, paragraphs: Iterable[Paragraph]) -> Iterator[QuestionExample]:
        for paragraph in paragraphs:
            passage = Passage(text=paragraph.text, tokens=_share(paragraph.tokens))
            for question in paragraph.questions:
                spans = (answer.span for answer in question.answers if answer.span is not None)
                yield QuestionExample(
                    name=question.name,
                    text=question.text,
                    tokens=_share(question.tokens[: self.settings.max_question_tokens]),
                    passage=passage,
                    answers=tuple(answer.text for answer in question.answers),
                    spans=tuple(dict.fromkeys(spans)),
                )

    def _find_gold(self, example: QuestionExample) -> list[Span]:
        if self.settings.gold_places is GoldPlaces.GIVEN:
            return list(example.spans)
        tokens = example.passage.tokens
        alike = (found for span in example.spans for found in find_alike(tokens, span))
        return list(dict.fromkeys(alike))


def _check_answers(path: Path, paragraphs: Iterable[Paragraph]) -> Iterator[Paragraph]:
    """Yield the paragraphs; at the end, warn about answers that are not at their offsets."""
    fits: Counter[Fit] = Counter()
    for paragraph in paragraphs:
        fits += count_fits([paragraph])
        yield paragraph
    problems = {
        Fit.MOVED: "with a wrong answer_start or one inside a word (the nearest occurrence is "
        "used)",
        Fit.MISSING: "not in their passage (not used in training)",
    }
    found = [f"{fits[fit]:,} {problem}" for fit, problem in problems.items() if fits[fit]]
    if found:
        warn_caller(
            f"{path}: of {fits.total():,} answers, {' and '.join(found)}",
            DataWarning,
        )


def cut_passages(
    examples: Iterable[QuestionExample], *, max_tokens: int
) -> Iterator[QuestionExample]:
    """Truncate passages, and skip questions whose answers are cut off."""
    whole: Passage | None = None
    for example in examples:
        if example.passage is not whole:  # otherwise questions share the truncated passage
            whole = example.passage
            beginning = whole.cut(max_tokens)
        spans = tuple(span for span in example.spans if span[1] <= max_tokens)
        if spans:
            yield replace(example, passage=beginning, spans=spans)


def find_alike(tokens: Sequence[str], span: Span) -> list[Span]:
    """Return all spans that have the same tokens as `span`.

    >>> find_alike(["so", "be", "so", "be"], (0, 2))
    [(0, 2), (2, 4)]
    """
    phrase = tokens[span[0] : span[1]]
    starts = range(len(tokens) - len(phrase) + 1)
    return [
        (start, start + len(phrase))
        for start in starts
        if tokens[start : start + len(phrase)] == phrase
    ]


def cut_answer(example: QuestionExample, found: FoundSpan) -> str:
    """Return the answer's text in the passage."""
    start, end = example.passage.locate(found.start, found.end)
    return example.passage.text[start:end]


def write_answers(
    path: Path, examples: Sequence[QuestionExample], predictions: Sequence[FoundSpan]
) -> None:
    """Write `{id: answer}`, the file that SQuAD's own evaluation reads."""
    answers = {
        example.name: cut_answer(example, found)
        for example, found in zip(examples, predictions, strict=True)
    }
    try:
        path.write_text(json.dumps(answers, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}; choose another path") from None


def _share(tokens: Iterable[str]) -> tuple[str, ...]:
    """Store each distinct token only once for all passages."""
    return tuple(intern(token) for token in tokens)

"""Questions whose answers are spans of a paragraph: SQuAD 1.1's JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmore.errors import DataError
from elmore.tasks.data.answer_spans import Fit, Span, align_answer, find_offsets
from elmore.tasks.data.json_list import read_json_list
from elmore.tasks.data.lines import quote, refuse_none
from elmore.text.language import Language
from elmore.text.sentences import split_sentences
from elmore.text.tokens import split_tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The text of an answer, and its tokens[start:end] in the paragraph."""

    text: str
    span: Span | None  # None if the text is not in the paragraph
    fit: Fit


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question and its answers, possibly from several people; empty if they were not read."""

    name: str
    text: str
    tokens: tuple[str, ...]
    answers: tuple[Answer, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Paragraph:
    """A text and the questions about it."""

    title: str  # of its article, or ""
    text: str
    sentences: tuple[tuple[str, ...], ...]
    offsets: tuple[Span, ...]  # character offsets of all sentences' tokens in the text
    questions: tuple[Question, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of all sentences; answer spans are indices into them."""
        return tuple(token for sentence in self.sentences for token in sentence)

    def quote(self, start: int, end: int) -> str:
        """Return the original text of tokens[start:end], including spaces."""
        return self.text[self.offsets[start][0] : self.offsets[end - 1][1]]


def read_paragraphs(
    path: Path, *, language: Language = Language.EN, needs_answers: bool = True
) -> Iterator[Paragraph]:
    """Yield the paragraphs of all articles; only one article is in memory at a time.

    Without `needs_answers`, answers in the file are ignored and questions have none.
    """
    paragraphs = _read(path, language=language, needs_answers=needs_answers)
    complaint = f"{path} has no questions; give SQuAD's JSON, with articles under 'data'"
    return refuse_none(paragraphs, complaint=complaint)


def count_fits(paragraphs: Iterable[Paragraph]) -> Counter[Fit]:
    """Count how the answers' tokens were found."""
    return Counter(
        answer.fit
        for paragraph in paragraphs
        for question in paragraph.questions
        for answer in question.answers
    )


def _read(path: Path, *, language: Language, needs_answers: bool) -> Iterator[Paragraph]:
    for number, article in enumerate(read_json_list(path, key="data"), start=1):
        where = f"{path}, article {number}"
        paragraphs = _get(article, "paragraphs", list, where=where)
        title = str(article.get("title", ""))
        where = f"{where} ({quote(title)})" if title else where
        for paragraph_number, entry in enumerate(paragraphs, start=1):
            yield _read_paragraph(
                entry,
                title=title,
                language=language,
                needs_answers=needs_answers,
                where=f"{where}, paragraph {paragraph_number}",
            )


def _read_paragraph(
    entry: Any, *, title: str, language: Language, needs_answers: bool, where: str
) -> Paragraph:
    text = _get(entry, "context", str, where=where)
    sentences = tuple(
        tuple(split_tokens(sentence, language=language))
        for sentence in split_sentences(text, language=language)
    )
    if not sentences:
        raise DataError(f"{where}: the context has no words; fill it in, or leave it out")
    offsets = find_offsets(text, (token for sentence in sentences for token in sentence))
    questions = []
    for question in _get(entry, "qas", list, where=where):
        name = _get(question, "id", str, where=where)
        where_asked = f"{where}, question {name}"
        asked = _get(question, "question", str, where=where_asked)
        tokens = tuple(split_tokens(asked.strip(), language=language))
        if not tokens:
            raise DataError(
                f"{where_asked}: the question has no words; fill it in, or leave it out"
            )
        answers = (
            _read_answers(question, text=text, offsets=offsets, where=where_asked)
            if needs_answers
            else ()
        )
        questions.append(Question(name=name, text=asked, tokens=tokens, answers=answers))
    return Paragraph(
        title=title, text=text, sentences=sentences, offsets=offsets, questions=tuple(questions)
    )


def _read_answers(
    question: Any, *, text: str, offsets: tuple[Span, ...], where: str
) -> tuple[Answer, ...]:
    answers = _get(question, "answers", list, where=where)
    if not answers:
        raise DataError(
            f"{where}: expected at least one answer, got none; leave the question out "
            "(unanswerable questions of SQuAD 2.0 are not supported)"
        )
    return tuple(_read_answer(each, text=text, offsets=offsets, where=where) for each in answers)


def _read_answer(entry: Any, *, text: str, offsets: tuple[Span, ...], where: str) -> Answer:
    answer = _get(entry, "text", str, where=where)
    start = _get(entry, "answer_start", int, where=where)
    if not answer.strip():
        raise DataError(f"{where}: an answer is blank; fill it in, or leave it out")
    span, fit = align_answer(text, offsets, answer=answer, start=start)
    return Answer(text=answer, span=span, fit=fit)


def _get(entry: Any, key: str, kind: type, *, where: str) -> Any:
    """Return the value of `key` in `entry`; raise an error if it has another type."""
    if not isinstance(entry, dict) or type(entry.get(key)) is not kind:
        found = entry.get(key, "nothing") if isinstance(entry, dict) else entry
        raise DataError(
            f"{where}: expected {_KINDS[kind]} under {key!r}, got {quote(str(found))}; fix it, "
            "or give SQuAD's JSON"
        )
    return entry[key]


_KINDS: dict[type, str] = {str: "a string", int: "an integer", list: "a list"}

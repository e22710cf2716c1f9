"""Questions to find answers for: SQuAD's JSON, whose answers, if it has any, nobody looks at."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmore.errors import DataError
from elmore.tasks.data.answer_spans import find_offsets
from elmore.tasks.data.json_list import read_json_list
from elmore.tasks.data.lines import refuse_none, shorten
from elmore.tasks.data.questions import Paragraph, Question
from elmore.text.sentences import split_sentences
from elmore.text.tokens import split_tokens


def read_unanswered(path: Path) -> Iterator[Paragraph]:
    """Yield paragraphs as `read_paragraphs` does, their questions without answers."""
    complaint = f"{path} has no paragraphs; give SQuAD's JSON, with articles under 'data'"
    return refuse_none(_read(path), complaint=complaint)


def _read(path: Path) -> Iterator[Paragraph]:
    for number, article in enumerate(read_json_list(path, key="data"), start=1):
        where = f"{path}, article {number}"
        for place, entry in enumerate(_get_list(article, "paragraphs", where=where), start=1):
            yield _read_paragraph(entry, where=f"{where}, paragraph {place}")


def _read_paragraph(entry: Any, *, where: str) -> Paragraph:
    text = _get_text(entry, "context", where=where)
    sentences = tuple(tuple(split_tokens(sentence)) for sentence in split_sentences(text))
    return Paragraph(
        title="",
        text=text,
        sentences=sentences,
        offsets=find_offsets(text, (token for sentence in sentences for token in sentence)),
        questions=tuple(
            _read_question(question, where=f"{where}, question {place}")
            for place, question in enumerate(_get_list(entry, "qas", where=where), start=1)
        ),
    )


def _read_question(entry: Any, *, where: str) -> Question:
    text = _get_text(entry, "question", where=where)
    return Question(
        name=_get_text(entry, "id", where=where),
        text=text,
        tokens=tuple(split_tokens(text.strip())),
        answers=(),
    )


def _get_text(entry: Any, key: str, *, where: str) -> str:
    """Return the words that `entry` has under `key`; SQuAD leaves none of its texts blank."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise _refuse(entry, key, wanted="a text that is not blank", where=where)
    return value


def _get_list(entry: Any, key: str, *, where: str) -> list[Any]:
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, list):
        raise _refuse(entry, key, wanted="a list", where=where)
    return value


def _refuse(entry: Any, key: str, *, wanted: str, where: str) -> DataError:
    found = entry.get(key, "nothing") if isinstance(entry, dict) else entry
    return DataError(
        f"{where}: wanted {wanted} under {key!r}, got {shorten(str(found))}; mend it, or give "
        "SQuAD's JSON"
    )

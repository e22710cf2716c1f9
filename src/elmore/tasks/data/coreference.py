"""Documents with coreference clusters: CoNLL-2012 columns and CoNLL-U.

Brackets (see `mentions.py`) are in the last column: of many in CoNLL-2012 and LitBank, of three in
OntoGUM, and of ten in CoNLL-U, as Entity=.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path

from elmore.errors import DataError
from elmore.tasks.data.lines import has_suffix, quote, read_lines, refuse_none, split_columns
from elmore.tasks.data.mentions import Clusters, MentionReader

# OntoGUM's replacement for words that it may not publish.
HIDDEN_WORD = "_"

# Columns of CoNLL-2012, which has one more for each predicate.
WORD, SPEAKER, MIN_COLUMNS = 3, 9, 12
NUM_SHORT_COLUMNS, SHORT_WORD = 3, 1
NUM_CONLLU_COLUMNS, CONLLU_WORD = 10, 1

_BEGIN = re.compile(r"#\s*begin document\b(.*)")
_NAME_AND_PART = re.compile(r"\((.*)\);?(?:\s*part\s+(\S+))?")
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b(?:\s+id\s*=\s*(.*\S))?\s*")
_SPEAKER = re.compile(r"#\s*speaker\s*=\s*(.*\S)\s*")
_WORD_ID = re.compile(r"[0-9]+")
_SKIPPED_ID = re.compile(r"[0-9]+[-.][0-9]+")
_ENTITY = re.compile(r"(?:^|\|)Entity=([^|]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class SpokenSentence:
    """A sentence and its speaker, if known."""

    tokens: tuple[str, ...]
    speaker: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusteredDocument:
    """A document and its clusters; a mention is tokens[start:end] of the document."""

    name: str
    sentences: tuple[SpokenSentence, ...]
    clusters: Clusters

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of all sentences."""
        return tuple(token for sentence in self.sentences for token in sentence.tokens)

    @property
    def hidden_share(self) -> float:
        """The share of words that are "_"; a text with many of them is no use for training."""
        tokens = self.tokens
        return tokens.count(HIDDEN_WORD) / len(tokens)


@dataclass(kw_only=True, slots=True)
class _Sentence:
    """A sentence while it is being read."""

    document: tuple[int, str]  # with a number, because names may be repeated
    speaker: str | None = None
    tokens: list[str] = field(default_factory=list)
    brackets: list[tuple[str, str]] = field(default_factory=list)  # with file and line


def read_documents(path: Path, *, reads_clusters: bool = True) -> Iterator[ClusteredDocument]:
    """Yield a file's documents; its name (.conllu) and its columns determine the format.

    OntoGUM's three columns have no sentence boundaries; its CoNLL-U has them, and speakers too.
    Without `reads_clusters` the clusters are empty and brackets of any form are ignored,
    such as the more detailed ones in GUM's own CoNLL-U.
    """
    is_conllu = has_suffix(path, ".conllu")
    sentences = _read_conllu(path) if is_conllu else _read_columns(path)
    documents = groupby(sentences, key=lambda sentence: sentence.document)
    complaint = f"{path} has no document with words; give CoNLL-2012 columns or CoNLL-U"
    return refuse_none(
        (
            _build(name, list(group), reads_clusters=reads_clusters)
            for (_, name), group in documents
        ),
        complaint=complaint,
    )


def _build(name: str, sentences: list[_Sentence], *, reads_clusters: bool) -> ClusteredDocument:
    return ClusteredDocument(
        name=name,
        sentences=tuple(
            SpokenSentence(tokens=tuple(sentence.tokens), speaker=sentence.speaker)
            for sentence in sentences
        ),
        clusters=_read_clusters(sentences) if reads_clusters else (),
    )


def _read_clusters(sentences: list[_Sentence]) -> Clusters:
    mentions = MentionReader()
    for sentence in sentences:
        for cell, where in sentence.brackets:
            mentions.read(cell, where=where)
        mentions.end_sentence()
    return mentions.clusters


def _read_columns(path: Path) -> Iterator[_Sentence]:
    document = (0, _name_file(path))
    sentence = _Sentence(document=document)
    for number, line in chain(read_lines(path), [(0, "")]):
        if line.strip() and not line.startswith("#"):
            where = f"{path}, line {number}"
            token, speaker, brackets = _read_row(line, where=where)
            sentence.speaker = sentence.speaker or speaker
            # In OntoGUM, the word "|" is missing.
            sentence.tokens.append(token or HIDDEN_WORD)
            sentence.brackets.append((brackets, where))
            continue
        if sentence.tokens:
            yield sentence
        if begin := _BEGIN.fullmatch(line):
            document = (number, _read_name(begin[1].strip()) or _name_file(path))
        sentence = _Sentence(document=document)


def _read_name(text: str) -> str:
    """Join a document's name and part, if they are separate.

    >>> _read_name("(bc/cctv/00); part 001"), _read_name("letters")
    ('bc/cctv/00/001', 'letters')
    """
    match = _NAME_AND_PART.fullmatch(text)
    return "/".join(part for part in match.groups() if part) if match else text


def _read_row(line: str, *, where: str) -> tuple[str, str | None, str]:
    """Return a word, its speaker and its brackets."""
    columns = split_columns(line)
    if len(columns) == NUM_SHORT_COLUMNS:
        return columns[SHORT_WORD], None, columns[-1].strip()
    if len(columns) < MIN_COLUMNS:
        raise DataError(
            f"{where}: expected {NUM_SHORT_COLUMNS} columns (number, word, brackets) or at least "
            f"{MIN_COLUMNS} of CoNLL-2012, got {len(columns)} ({quote(line)}); fix the line, or "
            "if the file is CoNLL-U, name it .conllu"
        )
    speaker = columns[SPEAKER]
    return columns[WORD], None if speaker in ("-", "_", "") else speaker, columns[-1].strip()


def _read_conllu(path: Path) -> Iterator[_Sentence]:
    document = (0, _name_file(path))
    sentence = _Sentence(document=document)
    for number, line in chain(read_lines(path), [(0, "")]):
        if not line.strip():
            if sentence.tokens:
                yield sentence
            sentence = _Sentence(document=document)
        elif line.startswith("#"):
            if new_document := _NEW_DOCUMENT.fullmatch(line):
                document = (number, new_document[1] or _name_file(path))
                sentence.document = document
            elif speaker := _SPEAKER.fullmatch(line):
                sentence.speaker = speaker[1]
        else:
            where = f"{path}, line {number}"
            if row := _read_conllu_row(line, where=where):
                token, brackets = row
                sentence.tokens.append(token)
                sentence.brackets.append((brackets, where))


def _read_conllu_row(line: str, *, where: str) -> tuple[str, str] | None:
    """Return a word and its brackets; None for multiword ranges and empty nodes."""
    columns = line.split("\t")
    is_word = _WORD_ID.fullmatch(columns[0]) is not None
    is_known = is_word or _SKIPPED_ID.fullmatch(columns[0])
    if not is_known or len(columns) != NUM_CONLLU_COLUMNS or not all(columns):
        raise DataError(
            f"{where}: expected the {NUM_CONLLU_COLUMNS} columns of CoNLL-U, separated by tabs, "
            f"with a number first, got {sum(map(bool, columns))} ({quote(line)}); fix the line"
        )
    if not is_word:
        return None
    entity = _ENTITY.search(columns[-1])
    return columns[CONLLU_WORD], entity[1] if entity else ""


def _name_file(path: Path) -> str:
    return path.name.partition(".")[0]

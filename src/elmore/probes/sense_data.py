"""Text with WordNet senses: SemCor as JSON lines, and XML of the unified evaluation framework.

The framework is by Raganato et al. (2017); `index.sense` is WordNet's own list of senses.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from elmore.errors import DataError
from elmore.tasks.data.lines import read_filled_lines, read_lines
from elmore.text.files import TextForm, read_sentences

Lemma = tuple[str, str]  # a lemma and its part of speech

# The first digit of a sense key's second half; 5 is a satellite adjective.
_PARTS_OF_SPEECH = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}
_JOINT = re.compile(r"[_\s]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class SenseTarget:
    """A word or multiword expression with known senses; it covers tokens[start:end]."""

    start: int
    end: int
    lemma: str
    part_of_speech: str  # NOUN, VERB, ADJ or ADV
    keys: tuple[str, ...]  # WordNet sense keys; there may be several correct ones
    name: str

    @property
    def entry(self) -> Lemma:
        """The dictionary entry: lemma and part of speech."""
        return self.lemma, self.part_of_speech


@dataclass(frozen=True, kw_only=True, slots=True)
class SenseSentence:
    """A sentence, and its words with known senses."""

    tokens: tuple[str, ...]
    targets: tuple[SenseTarget, ...]


def read_sense_sentences(path: Path) -> Iterator[SenseSentence]:
    """Read `X.jsonl`, or `X.data.xml` and `X.gold.key.txt`; also .gz, .xz, .bz2 and .zst."""
    if ".data.xml" in path.name:
        return _read_framework(path)
    if ".jsonl" in path.name:
        return _read_json_lines(path)
    raise DataError(
        f"{path} has an unknown format; give a file with .jsonl or .data.xml in its name"
    )


def read_first_senses(path: Path) -> dict[Lemma, str]:
    """Read the first sense of each lemma and part of speech from WordNet's `index.sense`."""
    first: dict[Lemma, str] = {}
    for number, columns in enumerate(read_sentences(path, form=TextForm.TOKENIZED), start=1):
        lemma, _, rest = columns[0].partition("%") if columns else ("", "", "")
        if len(columns) != 4 or rest[:1] not in _PARTS_OF_SPEECH or not columns[2].isdecimal():
            raise DataError(
                f"{path}, line {number}: expected a sense key, an offset, the sense's number and a "
                f"count, got {' '.join(columns)[:40]!r}; give WordNet's file index.sense"
            )
        if int(columns[2]) == 1:
            first.setdefault((lemma, _PARTS_OF_SPEECH[rest[0]]), columns[0])
    return first


class _SentenceBuilder:
    """Builds a sentence token by token; `where` is the position for error messages."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.targets: list[SenseTarget] = []

    def add_token(self, token: str) -> tuple[int, int]:
        """Add a token, or the parts of a joined one; return its start and end."""
        # A biLM was trained on "primary election" and has never seen "primary_election", so joined
        # words are split into tokens, and the target is a span of them.
        start = len(self.tokens)
        self.tokens += [part for part in _JOINT.split(token) if part] or [token]
        return start, len(self.tokens)

    def add_target(
        self, span: tuple[int, int], *, lemma: Any, pos: Any, keys: list[str], name: str, where: str
    ) -> None:
        """Add a target that covers tokens[span[0]:span[1]]."""
        if pos not in _PARTS_OF_SPEECH.values() or not isinstance(lemma, str) or not lemma:
            raise DataError(
                f"{where}: expected a lemma and NOUN, VERB, ADJ or ADV as its part of speech, got "
                f"{lemma!r} and {pos!r}; fix the line"
            )
        entry = {"lemma": _JOINT.sub("_", lemma.lower()), "part_of_speech": pos}
        target = SenseTarget(start=span[0], end=span[1], **entry, keys=tuple(keys), name=name)
        self.targets.append(target)

    def build(self) -> SenseSentence:
        return SenseSentence(tokens=tuple(self.tokens), targets=tuple(self.targets))


def _read_json_lines(path: Path) -> Iterator[SenseSentence]:
    for number, line in read_filled_lines(path):
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
            tokens, senses = entry["tokens"], entry["senses"]
            fields = [(s["i"], s["lemma"], s["pos"], _split_keys(s["key"])) for s in senses]
            are_tokens = isinstance(tokens, list) and all(token.strip() for token in tokens)
            are_indices = all(tokens[index] and index >= 0 for index, *_ in fields)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            are_tokens = are_indices = False
        if not are_tokens or not are_indices:
            raise DataError(
                f'{where}: expected {{"tokens": [...], "senses": [{{"i": index of a token, '
                f'"lemma": ..., "pos": ..., "key": ...}}]}}, got {line[:40]!r}; fix the line'
            )
        builder = _SentenceBuilder()
        spans = [builder.add_token(token) for token in tokens]
        for index, lemma, pos, keys in fields:
            name = f"{number}.{index}"
            builder.add_target(
                spans[index], lemma=lemma, pos=pos, keys=keys, name=name, where=where
            )
        yield builder.build()


def _split_keys(text: str) -> list[str]:
    """Split several senses in SemCor's notation.

    >>> _split_keys("play%1:04:05::;1:04:04::")
    ['play%1:04:05::', 'play%1:04:04::']
    """
    lemma, joint, senses = text.partition("%")
    if not lemma or not senses:
        raise ValueError
    return [lemma + joint + sense for sense in senses.split(";")]


def _read_framework(path: Path) -> Iterator[SenseSentence]:
    gold_path = path.with_name(f"{path.name.partition('.data.xml')[0]}.gold.key.txt")
    keys = _read_gold_keys(gold_path)
    lines = _LineFile(path)
    builder = _SentenceBuilder()
    try:
        for event, element in ElementTree.iterparse(lines, events=("start", "end")):
            where = f"{path}, line {lines.number}"
            if event == "start":
                builder = _SentenceBuilder() if element.tag == "sentence" else builder
            elif element.tag in ("wf", "instance"):
                span = builder.add_token(_read_token(element, where=where))
                if element.tag == "instance":
                    name = element.get("id", "")
                    if name not in keys:
                        raise DataError(
                            f"{where}: {gold_path.name} has no sense for {name!r}, or this id is "
                            "repeated; give the two files of one test set"
                        )
                    lemma, pos = element.get("lemma"), element.get("pos")
                    found = keys.pop(name)
                    builder.add_target(
                        span, lemma=lemma, pos=pos, keys=found, name=name, where=where
                    )
            elif element.tag == "sentence":
                yield builder.build()
            elif element.tag == "text":
                element.clear()  # otherwise the tree keeps everything in memory
    except ElementTree.ParseError as error:
        raise DataError(f"{path} is not XML ({error}); fix or replace the file") from None
    if keys:
        raise DataError(
            f"{gold_path} has a sense for {next(iter(keys))!r}, which is not in {path.name}; give "
            "the two files of one test set"
        )


def _read_token(element: ElementTree.Element, *, where: str) -> str:
    token = (element.text or "").strip()
    if not token:
        raise DataError(f"{where}: a <{element.tag}> has no text; add its word")
    return token


def _read_gold_keys(path: Path) -> dict[str, list[str]]:
    if not path.exists():
        raise DataError(f"there is no file {path}; put the senses next to their .data.xml")
    keys: dict[str, list[str]] = {}
    for number, columns in enumerate(read_sentences(path, form=TextForm.TOKENIZED), start=1):
        if len(columns) == 1 or not all("%" in key for key in columns[1:]):
            raise DataError(
                f"{path}, line {number}: expected a name and sense keys (with % in them), got "
                f"{' '.join(columns)[:40]!r}; fix the line"
            )
        if columns:
            keys[columns[0]] = columns[1:]
    return keys


class _LineFile:
    """Feeds an XML parser one line at a time, so that errors can name the line."""

    def __init__(self, path: Path) -> None:
        self.number = 0
        self._path = path
        self._lines = read_lines(path)

    def read(self, _num_chars: int = -1) -> str:
        """Return the next line, "" after the last."""
        self.number += 1
        _, line = next(self._lines, (0, None))
        if line is None:
            return ""
        if "<!DOCTYPE" in line:  # entities could expand endlessly or read other files
            raise DataError(
                f"{self._path}, line {self.number}: a document type is not allowed, because it may "
                "define entities; remove it"
            )
        return f"{line}\n"

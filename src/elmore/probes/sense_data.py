"""Text with WordNet senses: SemCor as JSON lines, the unified evaluation framework's XML.

The framework is Raganato et al.'s (2017); `index.sense` is WordNet's own list of its senses.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from elmore.errors import DataError
from elmore.tasks.data.lines import read_lines
from elmore.text.files import TextForm, read_sentences

Lemma = tuple[str, str]  # a lemma and its part of speech

# The first digit of a sense key's second half; 5 is a satellite adjective.
_PARTS_OF_SPEECH = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}
_JOINT = re.compile(r"[_\s]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class SenseTarget:
    """A word, or several read as one, whose sense is known; it covers tokens[start:end]."""

    start: int
    end: int
    lemma: str
    part_of_speech: str  # NOUN, VERB, ADJ or ADV
    keys: tuple[str, ...]  # WordNet's sense keys; several may be right
    name: str

    @property
    def entry(self) -> Lemma:
        """What a dictionary lists the senses under."""
        return self.lemma, self.part_of_speech


@dataclass(frozen=True, kw_only=True, slots=True)
class SenseSentence:
    """A sentence and those of its words whose sense is known."""

    tokens: tuple[str, ...]
    targets: tuple[SenseTarget, ...]


def read_sense_sentences(path: Path) -> Iterator[SenseSentence]:
    """Read `X.jsonl`, or `X.data.xml` with `X.gold.key.txt` beside it; .gz, .xz, .bz2, .zst too."""
    if ".data.xml" in path.name:
        return _read_framework(path)
    if ".jsonl" in path.name:
        return _read_json_lines(path)
    raise DataError(
        f"{path} has neither .jsonl nor .data.xml in its name, so its form is unknown; name it so"
    )


def read_first_senses(path: Path) -> dict[Lemma, str]:
    """Read the first sense of every lemma, by part of speech, from WordNet's `index.sense`."""
    first: dict[Lemma, str] = {}
    for number, columns in enumerate(read_sentences(path, form=TextForm.TOKENIZED), start=1):
        lemma, _, rest = columns[0].partition("%") if columns else ("", "", "")
        if len(columns) != 4 or rest[:1] not in _PARTS_OF_SPEECH or not columns[2].isdecimal():
            raise DataError(
                f"{path}, line {number}: wanted a sense key, an offset, the sense's number and a "
                f"count, got {' '.join(columns)[:40]!r}; give WordNet's file index.sense"
            )
        if int(columns[2]) == 1:
            first.setdefault((lemma, _PARTS_OF_SPEECH[rest[0]]), columns[0])
    return first


class _SentenceBuilder:
    """Puts a sentence together token by token; a mistake is told with `where`."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.targets: list[SenseTarget] = []

    def add_token(self, token: str) -> tuple[int, int]:
        """Add a token, or the parts of a joined one; return where it starts and ends."""
        # A biLM has read "primary election" as two words and has never seen "primary_election",
        # so joined words become tokens of their own, and a target a span of them.
        start = len(self.tokens)
        self.tokens += [part for part in _JOINT.split(token) if part] or [token]
        return start, len(self.tokens)

    def add_target(
        self, span: tuple[int, int], *, lemma: Any, pos: Any, keys: list[str], name: str, where: str
    ) -> None:
        """Add what covers the tokens from `span[0]` to `span[1]`."""
        if pos not in _PARTS_OF_SPEECH.values() or not isinstance(lemma, str) or not lemma:
            raise DataError(
                f"{where}: wanted a lemma and NOUN, VERB, ADJ or ADV as its part of speech, got "
                f"{lemma!r} and {pos!r}; mend the line"
            )
        entry = {"lemma": _JOINT.sub("_", lemma.lower()), "part_of_speech": pos}
        target = SenseTarget(start=span[0], end=span[1], **entry, keys=tuple(keys), name=name)
        self.targets.append(target)

    def build(self) -> SenseSentence:
        return SenseSentence(tokens=tuple(self.tokens), targets=tuple(self.targets))


def _read_json_lines(path: Path) -> Iterator[SenseSentence]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
            tokens, senses = entry["tokens"], entry["senses"]
            fields = [(s["i"], s["lemma"], s["pos"], _split_keys(s["key"])) for s in senses]
            are_tokens = isinstance(tokens, list) and all(token.strip() for token in tokens)
            are_places = all(tokens[place] and place >= 0 for place, *_ in fields)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            are_tokens = are_places = False
        if not are_tokens or not are_places:
            raise DataError(
                f'{where}: wanted {{"tokens": [...], "senses": [{{"i": place of a token, "lemma": '
                f'..., "pos": ..., "key": ...}}]}}, got {line[:40]!r}; mend the line'
            )
        builder = _SentenceBuilder()
        spans = [builder.add_token(token) for token in tokens]
        for place, lemma, pos, keys in fields:
            name = f"{number}.{place}"
            builder.add_target(
                spans[place], lemma=lemma, pos=pos, keys=keys, name=name, where=where
            )
        yield builder.build()


def _split_keys(text: str) -> list[str]:
    """Split SemCor's way of giving several senses.

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
                            f"{where}: {gold_path.name} has no sense for {name!r}, or it came "
                            "before; give the two files of one test set"
                        )
                    lemma, pos = element.get("lemma"), element.get("pos")
                    found = keys.pop(name)
                    builder.add_target(
                        span, lemma=lemma, pos=pos, keys=found, name=name, where=where
                    )
            elif element.tag == "sentence":
                yield builder.build()
            elif element.tag == "text":
                element.clear()  # else the tree keeps all that was read
    except ElementTree.ParseError as error:
        raise DataError(f"{path} is not XML ({error}); mend the file, or copy it again") from None
    if keys:
        raise DataError(
            f"{gold_path} has a sense for {next(iter(keys))!r}, which is not in {path.name}; give "
            "the two files of one test set"
        )


def _read_token(element: ElementTree.Element, *, where: str) -> str:
    token = (element.text or "").strip()
    if not token:
        raise DataError(f"{where}: a <{element.tag}> has no text; put its word in")
    return token


def _read_gold_keys(path: Path) -> dict[str, list[str]]:
    if not path.exists():
        raise DataError(f"there is no file {path}; put the senses beside their .data.xml")
    keys: dict[str, list[str]] = {}
    for number, columns in enumerate(read_sentences(path, form=TextForm.TOKENIZED), start=1):
        if len(columns) == 1 or not all("%" in key for key in columns[1:]):
            raise DataError(
                f"{path}, line {number}: wanted a name and sense keys (with % in them), got "
                f"{' '.join(columns)[:40]!r}; mend the line"
            )
        if columns:
            keys[columns[0]] = columns[1:]
    return keys


class _LineFile:
    """Gives an XML parser one line at a time, so that a mistake can be told by its line."""

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
        if "<!DOCTYPE" in line:  # without one, there are no entities that grow or read other files
            raise DataError(
                f"{self._path}, line {self.number}: a document type is not read, since it may "
                "define entities; remove it"
            )
        return f"{line}\n"

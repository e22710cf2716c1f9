"""Which input file each stretch of a corpus comes from, and how often training reads it.

The weight of an input is how often it is read per epoch. An epoch is still one circle of text: an
input with weight 2 is in it twice, so every step reads the sources in proportion.
"""

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

from elmore.corpus.corpus import Corpus
from elmore.corpus.folder import PARTS
from elmore.corpus.part import CorpusPart
from elmore.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Symbols of a part that come from one input."""

    input_number: int
    first: int
    end: int


def weigh_inputs(corpus: Corpus, weights: Mapping[str, int]) -> Corpus:
    """Return the corpus with each input repeated in the training part according to its weight.

    The keys of `weights` are patterns for names of input files, with or without folder and suffix;
    an input gets the weight of the last pattern that matches it, by default 1. The fingerprint
    changes too, so that a run cannot be resumed with other weights.
    """
    if not weights:
        return corpus
    stretches = locate_inputs(corpus, corpus.train)
    of_inputs = _find_weights(corpus, weights)
    read = [
        (stretch.first, stretch.end)
        for turn in range(max(of_inputs))
        for stretch in stretches
        if of_inputs[stretch.input_number] > turn
    ]
    if not read:
        raise ConfigError(
            "training.weights leaves no text to train on; give at least one source a weight above 0"
        )
    reading = json.dumps([corpus.fingerprint, read]).encode()
    return replace(
        corpus,
        train=corpus.train.select(read),
        fingerprint=hashlib.sha256(reading).hexdigest(),
    )


def split_by_input(corpus: Corpus, part: CorpusPart) -> dict[str, CorpusPart]:
    """Split a part by source; sources without text in this part are left out."""
    names = name_inputs(corpus)
    stretches: dict[str, list[tuple[int, int]]] = {}
    for stretch in locate_inputs(corpus, part):
        name = names[stretch.input_number]
        stretches.setdefault(name, []).append((stretch.first, stretch.end))
    return {name: part.select(own) for name, own in stretches.items()}


def list_sources(corpus: Corpus, *, part: str) -> list[str]:
    """Return the sources that may have text in the part "train" or "heldout", in order.

    Unless files were given to hold out, documents are held out of the training files.
    """
    parts = [entry["part"] for entry in corpus.about["inputs"]]
    origin = part if part in parts else "train"
    named = zip(name_inputs(corpus), parts, strict=True)
    return list(dict.fromkeys(name for name, own in named if own == origin))


def records_inputs(corpus: Corpus) -> bool:
    """Return whether a corpus records which text comes from which input; older ones do not."""
    shards = corpus.about.get("shards", [])
    return bool(shards) and all(entry.get("inputs") is not None for entry in shards)


def locate_inputs(corpus: Corpus, part: CorpusPart) -> list[Stretch]:
    """Return the stretches of a part by input."""
    shards = corpus.about.get("shards", [])
    if not records_inputs(corpus):
        raise DataError(
            f"{corpus.folder} does not record which text comes from which file; prepare it again "
            "with this version of elmore"
        )
    found: list[Stretch] = []
    for first, number, inner, length in part.segments():
        for stretch in _cut_by_input(part, number, shards[number]["inputs"]):
            start = max(inner, stretch.first) - inner + first
            end = min(inner + length, stretch.end) - inner + first
            if start >= end:
                continue
            if found and (found[-1].input_number, found[-1].end) == (stretch.input_number, start):
                start = found.pop().first
            found.append(Stretch(input_number=stretch.input_number, first=start, end=end))
    return found


def name_inputs(corpus: Corpus) -> list[str]:
    """Return the source of each input: its short name, with folders if others share that name."""
    entries = corpus.about["inputs"]
    found = [""] * len(entries)
    for part in PARTS:
        own = [number for number, entry in enumerate(entries) if entry["part"] == part]
        names = shorten_paths([entries[number]["name"] for number in own])
        for number, name in zip(own, names, strict=True):
            found[number] = name
    return found


def shorten_paths(paths: Sequence[str]) -> list[str]:
    """Return short names of files, with as many folders as it takes to tell the folders apart.

    >>> shorten_paths(["a/news.1.txt", "a/news.2.txt", "a/mail.txt"])
    ['news', 'news', 'mail']
    >>> shorten_paths(["x/a/news.txt", "x/b/news.txt", "x/b/mail.txt"])
    ['a/news', 'b/news', 'mail']
    """
    folders: dict[str, set[tuple[str, ...]]] = {}
    for path in paths:
        folders.setdefault(name_input(path), set()).add(Path(path).parent.parts)
    names = []
    for path in paths:
        name, folder = name_input(path), Path(path).parent.parts
        depth = _find_depth(folders[name])
        names.append("/".join([*folder[len(folder) - min(depth, len(folder)) :], name]))
    return names


def _find_depth(folders: set[tuple[str, ...]]) -> int:
    """Return how many of the last folders it takes to tell paths apart."""
    depth = 0
    while len({folder[max(len(folder) - depth, 0) :] for folder in folders}) < len(folders):
        depth += 1
    return depth


def name_input(path: str) -> str:
    """Return a file's name without its folder and suffixes.

    >>> name_input("texts/news.2019.txt.gz")
    'news'
    """
    name = Path(path).name
    return name.split(".")[0] or name


def _cut_by_input(part: CorpusPart, shard: int, inputs: Sequence[tuple[int, int]]) -> list[Stretch]:
    """Return which symbols of a shard come from which input."""
    bounds = part.sentence_starts(shard, [sentence for _, sentence in inputs])
    return [
        Stretch(input_number=number, first=first, end=end)
        for (number, _), (first, end) in zip(inputs, pairwise(bounds), strict=True)
    ]


def _find_weights(corpus: Corpus, weights: Mapping[str, int]) -> list[int]:
    """Return the weight of each input."""
    entries, names = corpus.about["inputs"], name_inputs(corpus)
    of_inputs = [1 if entry["part"] == "train" else 0 for entry in entries]
    for pattern, weight in weights.items():
        matches = [
            number
            for number, entry in enumerate(entries)
            if entry["part"] == "train" and _is_match(entry["name"], names[number], pattern)
        ]
        if not matches:
            sources = list_sources(corpus, part="train")
            close = difflib.get_close_matches(pattern, sources, n=1)
            known = ", ".join(sorted(sources)[:10]) + (", ..." if len(sources) > 10 else "")
            hint = f"did you mean {close[0]!r}?" if close else f"its sources are: {known}"
            raise ConfigError(f"no source of {corpus.folder} is named {pattern!r}; {hint}")
        for number in matches:
            of_inputs[number] = weight
    return of_inputs


def _is_match(path: str, source: str, pattern: str) -> bool:
    names = (path, Path(path).name, name_input(path), source)
    return any(fnmatchcase(name, pattern) for name in names)

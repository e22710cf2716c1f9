"""Semantic roles: who did what to whom, of given predicates (He et al., 2017; PropBank).

An example is one predicate of a sentence. Scores are those of srl-eval, the program of CoNLL-2005
and CoNLL-2012: the parts of an argument in pieces (ARG1, and later C-ARG1) count as one argument
that is right if all of its parts are, and the predicate itself (V, C-V) does not count.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from elmore.config import MAX_DIM, check_range, is_number
from elmore.errors import ConfigError, DataError
from elmore.tasks.data.lines import read_lines, refuse_none, shorten, split_columns
from elmore.tasks.data.role_columns import FRAMESET, NUM_AFTER, NUM_BEFORE, WORD
from elmore.tasks.data.role_examples import RoleExample
from elmore.tasks.data.roles import read_roles
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.metrics.spans import OUTSIDE, Span, SpanCounts, read_spans
from elmore.tasks.networks.role_tagger import NO_LABEL, RoleFeatures, RoleTagger
from elmore.tasks.task import Labels, Scores, Sentences

Tags = tuple[str, ...]

_PREDICATE = "V"
_CONTINUED = "C-"


@dataclass(frozen=True, kw_only=True)
class RoleSettings:
    """The tagger's size. He et al. have 8 layers of 300, and marks of 100."""

    hidden_dim: int = 128
    num_layers: int = 4
    """The first reads to the right, the second to the left, and so on."""
    mark_dim: int = 16
    """Width of the vector that says whether a token is the predicate."""
    dropout: float = 0.1
    """Of what each layer gives, and of its recurrent weights."""

    def __post_init__(self) -> None:
        """Refuse what no network can be built from."""
        check_range("task.hidden_dim", self.hidden_dim, 1, MAX_DIM)
        check_range("task.num_layers", self.num_layers, 1, 100)
        check_range("task.mark_dim", self.mark_dim, 1, MAX_DIM)
        if not is_number(self.dropout) or not 0 <= self.dropout <= 0.99:
            raise ConfigError(f"task.dropout is {self.dropout!r:.60}; give a number from 0 to 0.99")


class RoleTask:
    """The arguments of each predicate, as BIO tags."""

    name = "roles"
    main_score = "f1"

    def __init__(self, settings: RoleSettings) -> None:
        self.settings = settings

    def read(self, path: Path) -> Iterator[RoleExample]:
        """Yield an example a predicate, of JSON lines (.jsonl) or columns of CoNLL-2012."""
        return read_roles(path)

    def read_unlabelled(self, path: Path) -> Iterator[RoleExample]:
        """Yield an example a predicate; arguments may be there or not."""
        return read_predicates(path)

    def count_tokens(self, example: RoleExample) -> int:
        """Return the length of the sentence."""
        return len(example.tokens)

    def find_sentences(self, examples: Sequence[RoleExample]) -> tuple[Sentences, ...]:
        """Return each example's sentence; predicates of one sentence have the same."""
        return ([example.tokens for example in examples],)

    def find_labels(self, examples: Iterable[RoleExample]) -> Labels:
        """Return the tags of training, O first: with it, any sentence can be tagged."""
        tags = {tag for example in examples for tag in example.tags} - {OUTSIDE}
        return (OUTSIDE, *sorted(tags))

    def build(self, tokens: TokenInput, *, labels: Labels) -> RoleTagger:
        """Return an untrained tagger."""
        return RoleTagger(
            tokens=tokens,
            labels=labels,
            hidden_dim=self.settings.hidden_dim,
            num_layers=self.settings.num_layers,
            mark_dim=self.settings.mark_dim,
            dropout=self.settings.dropout,
        )

    def prepare(
        self, examples: Sequence[RoleExample], *, labels: Labels, with_gold: bool
    ) -> RoleFeatures:
        """Return where the predicates are, and if asked, the right tags by their numbers."""
        predicates = torch.tensor([example.predicate for example in examples])
        if not with_gold:
            return RoleFeatures(predicates=predicates, tags=None)
        numbers = {label: number for number, label in enumerate(labels)}
        tags = [
            torch.tensor([numbers.get(tag, NO_LABEL) for tag in example.tags])
            for example in examples
        ]
        padded = pad_sequence(tags, batch_first=True, padding_value=NO_LABEL)
        return RoleFeatures(predicates=predicates, tags=padded)

    def score(self, examples: Sequence[RoleExample], predictions: Sequence[Tags]) -> Scores:
        """Return precision, recall and F1 of arguments, in percent."""
        total = SpanCounts()
        for example, prediction in zip(examples, predictions, strict=True):
            gold, predicted = read_arguments(example.tags), read_arguments(prediction)
            total += SpanCounts(
                num_gold=len(gold),
                num_predicted=len(predicted),
                num_correct=len(gold & predicted),
            )
        return {
            "f1": 100 * total.f1,
            "precision": 100 * total.precision,
            "recall": 100 * total.recall,
        }

    def to_json(self, example: RoleExample, prediction: Tags) -> dict[str, Any]:
        """Return tokens, predicate and tags; and of the arguments, each piece."""
        return {
            "tokens": list(example.tokens),
            "predicate": example.predicate,
            "tags": list(prediction),
            "arguments": [
                {
                    "start": span.start,
                    "end": span.end,
                    "role": span.type,
                    "text": " ".join(example.tokens[span.start : span.end]),
                }
                for span in read_spans(prediction)
                if span.type.removeprefix(_CONTINUED) != _PREDICATE
            ],
        }


def read_arguments(tags: Sequence[str]) -> set[tuple[Span, ...]]:
    """Return the arguments of a predicate, each as its parts, as srl-eval reads them.

    A continuation belongs to the last argument of its role; without any, it is one itself.

    >>> read_arguments(["B-ARG1", "B-V", "O", "B-C-ARG1"])
    {(Span(start=0, end=1, type='ARG1'), Span(start=3, end=4, type='ARG1'))}
    """
    arguments: list[list[Span]] = []
    last_of: dict[str, list[Span]] = {}
    for span in read_spans(tags):
        role = span.type.removeprefix(_CONTINUED)
        part = Span(span.start, span.end, role)
        if role != span.type and role in last_of:
            last_of[role].append(part)
        else:
            last_of[role] = [part]
            arguments.append(last_of[role])
    return {tuple(parts) for parts in arguments if parts[0].type != _PREDICATE}


def read_predicates(path: Path) -> Iterator[RoleExample]:
    """Yield an example without tags for each predicate of a file."""
    is_json = ".jsonl" in map(str.lower, path.suffixes)
    found = _read_json_lines(path) if is_json else _read_columns(path)
    examples = (
        RoleExample(tokens=tokens, predicate=predicate, lemma="", sense="", tags=())
        for tokens, predicates in found
        for predicate in predicates
    )
    return refuse_none(examples, complaint=f"{path} has no predicates; give a file that has some")


_Found = tuple[tuple[str, ...], list[int]]  # a sentence, and which of its tokens are predicates


def _read_json_lines(path: Path) -> Iterator[_Found]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            tokens, predicates = entry["words"], [frame["pred"] for frame in entry["frames"]]
            is_fit = (
                isinstance(tokens, list)
                and all(isinstance(token, str) and token for token in tokens)
                and all(type(place) is int and 0 <= place < len(tokens) for place in predicates)
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            is_fit = False
        if not is_fit:
            raise DataError(
                f'{path}, line {number}: wanted {{"words": [...], "frames": [{{"pred": place of a '
                f"word, from 0}}]}}, got {shorten(line)}; mend the line"
            )
        yield tuple(tokens), predicates


def _read_columns(path: Path) -> Iterator[_Found]:
    rows: list[list[str]] = []
    for number, line in chain(read_lines(path), [(0, "")]):
        if line.strip() and not line.startswith("#"):
            rows.append(split_columns(line))
            if len(rows[-1]) < NUM_BEFORE + NUM_AFTER or len(rows[-1]) != len(rows[0]):
                raise DataError(
                    f"{path}, line {number}: wanted "
                    f"{max(len(rows[0]), NUM_BEFORE + NUM_AFTER)} columns of CoNLL-2012, got "
                    f"{len(rows[-1])} ({shorten(line)}); mend the line, or for JSON lines, name "
                    "the file .jsonl"
                )
        elif rows:
            yield tuple(row[WORD] for row in rows), _find_predicates(rows)
            rows = []


def _find_predicates(rows: list[list[str]]) -> list[int]:
    """Return the places marked (V*; where arguments have no columns, those with a frameset."""
    marked = [
        place
        for column in range(NUM_BEFORE, len(rows[0]) - NUM_AFTER)
        for place, row in enumerate(rows)
        if row[column].startswith(f"({_PREDICATE}*")
    ]
    return marked or [place for place, row in enumerate(rows) if row[FRAMESET] != "-"]

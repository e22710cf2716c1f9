"""Semantic role labeling: who did what to whom, for given predicates (He et al., 2017).

An example is one predicate of a sentence. Scores are those of srl-eval, the program of CoNLL-2005
and CoNLL-2012: a discontinuous argument (ARG1, and later C-ARG1) counts as one, correct if all its
parts are, and the predicate itself (V, C-V) does not count.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from elmore.config import MAX_DIM
from elmore.settings import check_range, check_share
from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.role_columns import PREDICATE
from elmore.tasks.data.role_examples import RoleExample
from elmore.tasks.data.role_predicates import read_predicates
from elmore.tasks.data.roles import read_roles
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.plain_inputs import is_list, refuse_input, take_tokens
from elmore.tasks.metrics.spans import SpanCounts
from elmore.tasks.metrics.tag_schemes import OUTSIDE, Span, read_spans
from elmore.tasks.networks.role_tagger import RoleFeatures, RoleTagger
from elmore.tasks.networks.tag_numbers import number_tags
from elmore.tasks.task import Labels, Scores, Sentences, Task

Tags = tuple[str, ...]

_CONTINUED = "C-"

FORMS = (FileForm.JSON_LINES, FileForm.CONLL2012)
EXPECTED = "JSON lines (.jsonl) with words and frames, or CoNLL-2012 columns"


@dataclass(frozen=True, kw_only=True)
class RoleSettings:
    """The size of the tagger. He et al. have 8 layers of 300, and marks of 100."""

    hidden_dim: int = 128
    num_layers: int = 4
    """The first reads left to right, the second right to left, and so on."""
    mark_dim: int = 16
    """Width of the vector that marks the predicate."""
    dropout: float = 0.1
    """On each layer's output and recurrent weights."""

    def __post_init__(self) -> None:
        """Check all values."""
        check_range("task.hidden_dim", self.hidden_dim, 1, MAX_DIM)
        check_range("task.num_layers", self.num_layers, 1, 100)
        check_range("task.mark_dim", self.mark_dim, 1, MAX_DIM)
        check_share("task.dropout", self.dropout)


class RoleTask(Task):
    """Predicts the arguments of each predicate as BIO tags."""

    name = "roles"
    main_score = "f1"

    @reads(*FORMS, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[RoleExample]:
        """Yield one example per predicate, from JSON lines (.jsonl) or CoNLL-2012 columns."""
        return read_roles(path)

    @reads(*FORMS, expected=EXPECTED)
    def read_unlabeled(self, path: Path) -> Iterator[RoleExample]:
        """Yield one example per predicate; arguments are optional and ignored."""
        return read_predicates(path)

    def parse(self, given: Any) -> RoleExample:
        """Return an example from a sentence and the index of its predicate, or unchanged."""
        if isinstance(given, RoleExample):
            return given
        is_pair = is_list(given) and len(given) == 2 and type(given[1]) is int
        tokens = take_tokens(given[0]) if is_pair else None
        if tokens is None or not 0 <= given[1] < len(tokens):
            expected = (
                "a sentence and the index of its predicate among the tokens, from 0, such as "
                "(['Cats', 'chase', 'mice'], 1)"
            )
            raise refuse_input(given, task=self.name, expected=expected)
        return RoleExample(tokens=tuple(tokens), predicate=given[1], lemma="", sense="", tags=())

    def find_sentences(self, examples: Sequence[RoleExample]) -> tuple[Sentences, ...]:
        """Return each example's sentence, repeated for each of its predicates."""
        return ([example.tokens for example in examples],)

    def find_labels(self, examples: Iterable[RoleExample]) -> Labels:
        """Return the tags in the training data, O first, so that any sentence can be tagged."""
        tags = {tag for example in examples for tag in example.tags} - {OUTSIDE}
        return (OUTSIDE, *sorted(tags))

    def list_labels(self, example: RoleExample) -> list[str]:
        """Return the roles of all arguments, each part counted separately, and the predicate."""
        return [span.type for span in read_spans(example.tags)]

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
        """Return the indices of the predicates, and with `with_gold` the numbers of gold tags."""
        predicates = torch.tensor([example.predicate for example in examples])
        tags = [example.tags for example in examples] if with_gold else None
        return RoleFeatures(
            predicates=predicates, tags=None if tags is None else number_tags(tags, labels=labels)
        )

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
        return total.to_percent()

    def to_json(self, example: RoleExample, prediction: Tags) -> dict[str, Any]:
        """Return tokens, predicate, tags and the parts of all arguments."""
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
                if span.type.removeprefix(_CONTINUED) != PREDICATE
            ],
        }


def read_arguments(tags: Sequence[str]) -> set[tuple[Span, ...]]:
    """Return the arguments of a predicate, each as a tuple of parts, as srl-eval reads them.

    A continuation belongs to the last argument with its role; without one, it is an argument.

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
    return {tuple(parts) for parts in arguments if parts[0].type != PREDICATE}

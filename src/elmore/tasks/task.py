"""What the training loop, the command line and a saved folder must know of a task."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from elmore.tasks.inputs.token_batch import TokenBatch
from elmore.tasks.inputs.token_input import TokenInput

Labels = tuple[str, ...]
Sentences = list[Sequence[str]]
Scores = dict[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskBatch:
    """Some examples as a network reads them."""

    sentences: tuple[TokenBatch, ...]  # one a role: premises and hypotheses, for example
    features: Any  # what the task's `prepare` returned, on the network's device


class TaskNetwork(Protocol):
    """A module that a task builds; `tokens` is its only way to words and ELMo vectors."""

    tokens: TokenInput

    def loss(self, batch: TaskBatch) -> Tensor:
        """Return the mean loss of the examples; their features have what is right."""

    def predict(self, batch: TaskBatch) -> list[Any]:
        """Return one prediction an example, as the task's `score` and `to_json` read them."""


class Task(Protocol):
    """A kind of task with its settings. Examples and predictions are the task's own types."""

    name: str  # as on the command line
    main_score: str  # the one of `score` that decides which weights are kept; more is better

    def read(self, path: Path) -> Iterator[Any]:
        """Yield a file's examples, with what is right; a DataError names file and line."""

    def read_training(self, path: Path) -> Iterator[Any]:
        """Yield the examples to learn from: mostly the same, but a task may cut or add some."""

    def read_unlabelled(self, path: Path) -> Iterator[Any]:
        """Yield examples to predict on; what is right may be missing, and is not looked at."""

    def parse(self, given: Any) -> Any:
        """Return an example to predict on: one of the task's as it is, or one made of plain text.

        What is neither is a DataError that says what is wanted.
        """

    def count_tokens(self, example: Any) -> int:
        """Return how long an example is; examples of like length share a batch."""

    def find_sentences(self, examples: Sequence[Any]) -> tuple[Sentences, ...]:
        """Return the sentences of a batch, one list a role; each sentence has a token."""

    def find_labels(self, examples: Iterable[Any]) -> Labels:
        """Return what may be predicted, in a fixed order; empty if that is no list."""

    def list_labels(self, example: Any) -> Iterable[str]:
        """Return what is right of an example as labels to count; none if that is no list."""

    def locate(self, example: Any) -> str:
        """Return where an example is, for a message: file and line if known, else its text."""

    def build(self, tokens: TokenInput, *, labels: Labels) -> TaskNetwork:
        """Return an untrained network."""

    def prepare(self, examples: Sequence[Any], *, labels: Labels, with_gold: bool) -> Any:
        """Return features of a batch: a tensor, or a dataclass that has `to(device)`."""

    def score(self, examples: Sequence[Any], predictions: Sequence[Any]) -> Scores:
        """Return the official scores, in percent, the main one among them."""

    def score_constant(self, examples: Sequence[Any]) -> float:
        """Return the best main score that the same prediction for everything can have.

        A network that does not score above it has learned nothing that the score shows.
        """

    def to_json(self, example: Any, prediction: Any) -> dict[str, Any]:
        """Return a prediction beside its text, for a line of JSON."""

"""What a task has to provide to the training loop, the command line and saved folders."""

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
    """A batch of examples as the input of a network."""

    sentences: tuple[TokenBatch, ...]  # one per role, such as premises and hypotheses
    features: Any  # what the task's `prepare` returned, on the network's device


class TaskNetwork(Protocol):
    """The network of a task; it gets words and ELMo vectors only through `tokens`."""

    tokens: TokenInput

    def loss(self, batch: TaskBatch) -> Tensor:
        """Return the mean loss of the examples; their features include the gold labels."""

    def predict(self, batch: TaskBatch) -> list[Any]:
        """Return one prediction per example, as expected by the task's `score` and `to_json`."""


class Task(Protocol):
    """A task with its settings. Each task has its own types of examples and predictions."""

    name: str  # on the command line
    main_score: str  # the score used for early stopping; higher is better

    def read(self, path: Path) -> Iterator[Any]:
        """Yield a file's examples with gold labels; a DataError names the file and line."""

    def read_training(self, path: Path) -> Iterator[Any]:
        """Yield the training examples: usually those of `read`, but a task may drop or add some."""

    def read_unlabelled(self, path: Path) -> Iterator[Any]:
        """Yield examples to predict on; gold labels may be missing and are ignored."""

    def parse(self, given: Any) -> Any:
        """Return an example to predict on, from an example of the task or from plain text.

        Anything else raises a DataError that says what was expected.
        """

    def count_tokens(self, example: Any) -> int:
        """Return the length of an example; examples of similar length share a batch."""

    def find_sentences(self, examples: Sequence[Any]) -> tuple[Sentences, ...]:
        """Return the sentences of a batch, one list per role; no sentence is empty."""

    def find_labels(self, examples: Iterable[Any]) -> Labels:
        """Return all labels in a fixed order; empty if the task does not predict labels."""

    def list_labels(self, example: Any) -> Iterable[str]:
        """Return the gold labels of an example; empty if the task does not predict labels."""

    def locate(self, example: Any) -> str:
        """Return the file and line of an example for messages, or its text if they are unknown."""

    def build(self, tokens: TokenInput, *, labels: Labels) -> TaskNetwork:
        """Return an untrained network."""

    def prepare(self, examples: Sequence[Any], *, labels: Labels, with_gold: bool) -> Any:
        """Return the features of a batch: a tensor, or a dataclass with a method `to(device)`."""

    def score(self, examples: Sequence[Any], predictions: Sequence[Any]) -> Scores:
        """Return the official scores in percent, including the main score."""

    def score_constant(self, examples: Sequence[Any]) -> float:
        """Return the best main score of a constant prediction.

        A network that scores no higher has learned nothing measurable.
        """

    def to_json(self, example: Any, prediction: Any) -> dict[str, Any]:
        """Return a prediction with its text, as one JSON object."""

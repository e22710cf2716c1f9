"""What a task has to provide; read this first to add one.

A task turns files into examples, examples into the input of a network, and predictions into scores.
Everything else is shared: the training loop, words and ELMo vectors, checkpoints, saved folders,
the command line. For a training run, the methods are called in this order:

    read_training, read     files -> examples, which are stored on disk
    find_labels             the labels of the training examples, stored with the network
    find_sentences          the tokens of examples -> words and ELMo vectors
    build                   an untrained network
    prepare, `loss`         for each training batch
    prepare, `predict`      for each batch of dev and test examples (without gold labels)
    score                   predictions -> scores; the main score decides when to stop

`predict` in Python and on the command line calls `read_unlabeled` or `parse`, then `to_json`.

To add a task:

1. Write a subclass of `Task` in a file of its own in `tasks/kinds/`, and a frozen dataclass of its
   settings whose defaults are all valid. `name`, `main_score`, `read`, `parse`, `find_sentences`,
   `build`, `prepare`, `score` and `to_json` are required; the other methods have defaults. Examples
   can be of any class that can be pickled.
2. Write its network, a `torch.nn.Module` with `loss` and `predict` (see `TaskNetwork`), in
   `tasks/networks/`, or use one that is there.
3. Add a line to the table in `tasks/kinds/table.py`.
4. Add `configs/tasks/NAME.toml` with `kind = "NAME"` and every setting that should differ from the
   defaults in `fit/settings.py`.

`kinds/texts.py` is a short example. `elmore fit NAME`, `predict` and `compare` then work as for the
other tasks.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from elmore.tasks.data.lines import quote
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
    settings: Any

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def read(self, path: Path) -> Iterator[Any]:
        """Yield a file's examples with gold labels; a DataError names the file and line."""

    @abstractmethod
    def parse(self, given: Any) -> Any:
        """Return an example to predict on, from an example of the task or from plain text.

        Anything else raises a DataError that says what was expected.
        """

    @abstractmethod
    def find_sentences(self, examples: Sequence[Any]) -> tuple[Sentences, ...]:
        """Return the sentences of a batch, one list per role; no sentence is empty."""

    @abstractmethod
    def build(self, tokens: TokenInput, *, labels: Labels) -> TaskNetwork:
        """Return an untrained network."""

    @abstractmethod
    def prepare(self, examples: Sequence[Any], *, labels: Labels, with_gold: bool) -> Any:
        """Return the features of a batch: a tensor, a dataclass of tensors, or None."""

    @abstractmethod
    def score(self, examples: Sequence[Any], predictions: Sequence[Any]) -> Scores:
        """Return the official scores in percent, including the main score."""

    @abstractmethod
    def to_json(self, example: Any, prediction: Any) -> dict[str, Any]:
        """Return a prediction with its text, as one JSON object."""

    def read_training(self, path: Path) -> Iterator[Any]:
        """Yield the training examples: by default those of `read`, but a task may drop or add."""
        return self.read(path)

    def read_unlabeled(self, path: Path) -> Iterator[Any]:
        """Yield examples to predict on; gold labels may be missing and are ignored."""
        return self.read(path)

    def count_tokens(self, example: Any) -> int:
        """Return the length of an example; examples of similar length share a batch."""
        return sum(len(tokens) for role in self.find_sentences([example]) for tokens in role)

    def list_labels(self, example: Any) -> Iterable[str]:  # noqa: ARG002
        """Return the gold labels of an example; empty if the task does not predict labels."""
        return ()

    @property
    def predicts_labels(self) -> bool:
        """Whether the task predicts labels."""
        return type(self).list_labels is not Task.list_labels

    def find_labels(self, examples: Iterable[Any]) -> Labels:
        """Return all labels in a fixed order; empty if the task does not predict labels."""
        return tuple(sorted({label for example in examples for label in self.list_labels(example)}))

    def locate(self, example: Any) -> str:
        """Return the file and line of an example for messages, or its text if they are unknown."""
        first = next(tokens for role in self.find_sentences([example]) for tokens in role)
        return f"the sentence {quote(' '.join(first))}"

    def score_constant(self, examples: Sequence[Any]) -> float:  # noqa: ARG002
        """Return the best main score of a constant prediction, such as the most frequent label.

        A network that scores no higher has learned nothing measurable.
        """
        return 0.0

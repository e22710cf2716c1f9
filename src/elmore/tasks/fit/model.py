"""A task network with everything it needs to read text: words, labels, a source of ELMo layers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmore.build import without_weights
from elmore.embed.layer_source import LayerSource
from elmore.errors import ConfigError, DataError
from elmore.tasks.fit.batches import sort_batches
from elmore.tasks.fit.settings import ElmoPlace, FitSettings
from elmore.tasks.inputs.char_filters import CharFilters
from elmore.tasks.inputs.elmo_vectors import ElmoVectors
from elmore.tasks.inputs.token_batch import TokenBatch, TokenBatcher, copy_to
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.inputs.trained_layers import TrainedLayers
from elmore.tasks.inputs.word_table import ChosenWords, choose_words, learn_words
from elmore.tasks.kinds.plain_inputs import check_iterable
from elmore.tasks.kinds.table import KINDS
from elmore.tasks.networks.tag_chain import TagChain
from elmore.tasks.task import Labels, Scores, Task, TaskBatch
from elmore.text.word_vectors import read_word_vectors

# Predictions sort this many examples by length at a time.
EXAMPLES_AT_ONCE = 2000


class TaskModel:
    """A trained or untrained task network; `predict` takes text, or examples of its task."""

    def __init__(
        self,
        settings: FitSettings,
        *,
        labels: Labels,
        words: ChosenWords,
        layers: LayerSource | None,
        device: str | torch.device = "cpu",
    ) -> None:
        self.settings = settings
        self.task = make_task(settings)
        self.labels = labels
        self.words = words
        self.device = torch.device(device)
        # A biLM that is trained is on the same device as the network.
        self.layers = layers.to(self.device) if isinstance(layers, TrainedLayers) else layers
        self.batcher = TokenBatcher(words=words.words, max_chars=settings.characters.max_chars)
        self.tokens = build_token_input(settings, words=words, layers=layers)
        network: Any = self.task.build(self.tokens, labels=labels)
        self.network = network.to(self.device)

    def make_batch(self, examples: Sequence[Any], *, with_gold: bool) -> TaskBatch:
        """Return a batch of examples as the input of the network."""
        features = self.task.prepare(examples, labels=self.labels, with_gold=with_gold)
        return TaskBatch(
            sentences=tuple(map(self._read, self.task.find_sentences(examples))),
            features=copy_to(features, self.device),
        )

    def _read(self, sentences: Sequence[Sequence[str]]) -> TokenBatch:
        tokens = self.batcher.make(sentences)
        layers = None if self.layers is None else self.layers.find(sentences)
        batch: TokenBatch = copy_to(tokens.with_layers(layers), self.device)
        return batch

    def loss(self, examples: Sequence[Any]) -> Tensor:
        """Return the training loss: that of the task plus the penalty on the mix weights."""
        loss: Tensor = self.network.loss(self.make_batch(examples, with_gold=True))
        return loss + self.tokens.penalty(self.settings.elmo.penalty).to(loss.device)

    def predict(
        self, examples: Iterable[Any], *, on_done: Callable[[int], None] = lambda _number: None
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each example and its prediction, in the given order.

        An example is an object that `read` yields, or plain text: a string or list of tokens for a
        sentence to tag, a string for a text or document, a pair of strings, a sentence with the
        index of its predicate, a dict with a question and its context.
        """
        # Not a generator itself, so that a wrong argument is refused right away.
        return self._predict(map(self.task.parse, check_iterable(examples)), on_done)

    @torch.no_grad()
    def _predict(
        self, examples: Iterator[Any], on_done: Callable[[int], None]
    ) -> Iterator[tuple[Any, Any]]:
        was_training = self.network.training
        self.network.eval()
        try:
            while some := list(islice(examples, EXAMPLES_AT_ONCE)):
                yield from zip(some, self._predict_some(some, on_done), strict=True)
        finally:
            self.network.train(was_training)

    def _predict_some(self, examples: Sequence[Any], on_done: Callable[[int], None]) -> list[Any]:
        training = self.settings.training
        batches = sort_batches(
            [self.task.count_tokens(example) for example in examples],
            batch_size=find_batch_size(self.settings),
            max_tokens=training.max_batch_tokens,
        )
        found: list[Any] = [None] * len(examples)
        for indices in batches:
            batch = self.make_batch([examples[index] for index in indices], with_gold=False)
            for index, prediction in zip(indices, self.network.predict(batch), strict=True):
                found[index] = prediction
            on_done(len(indices))
        return found

    @torch.no_grad()
    def describe(self, examples: Iterable[Any]) -> list[dict[str, Any]]:
        """Return predictions with their text and probabilities, as JSON objects.

        Examples are those of `predict`. Tags have `probabilities`, one per token; entities and
        arguments have the `probability` that all their tokens have these tags. Clusters of
        coreference have none.

        ```python
        (found,) = task.describe(["John lives in Paris."])
        print(found["entities"][0]["probability"])
        ```
        """
        self.network.eval()
        parsed = [self.task.parse(example) for example in check_iterable(examples)]
        if not hasattr(self.network, "predict_chains"):
            return [self.task.to_json(*pair) for pair in self.predict(parsed)]
        found = []
        for example in parsed:
            (chain,) = self.network.predict_chains(self.make_batch([example], with_gold=False))
            content = self.task.to_json(example, self.network.write(chain.labels))
            found.append(_add_probabilities(content, chain))
        return found

    def read(self, path: str | Path) -> Iterator[Any]:
        """Yield the examples of a text file or of a data file, ignoring its labels."""
        return self.task.read_unlabeled(Path(path))

    def __repr__(self) -> str:
        where = self.settings.elmo.where
        return f"TaskModel({self.settings.kind}, ELMo: {where}, {self.num_parameters:,} weights)"

    def score(
        self, examples: Iterable[Any], *, on_done: Callable[[int], None] = lambda _number: None
    ) -> Scores:
        """Return the official scores of predictions on examples with gold labels."""
        labeled = map(self._refuse_plain, check_iterable(examples))
        pairs = list(self._predict(labeled, on_done))
        return self.task.score([example for example, _ in pairs], [found for _, found in pairs])

    def _refuse_plain(self, example: Any) -> Any:
        if self.task.parse(example) is not example:
            raise DataError(
                f"plain text has no labels to score against, got {example!r:.40}; give examples "
                "with labels, such as model.task.read(path)"
            )
        return example

    @property
    def mixes(self) -> dict[str, ElmoVectors]:
        """The learned mixes of layers: below and above the network's encoder."""
        mixes = {"below": self.tokens.elmo_below, "above": self.tokens.elmo_above}
        return {name: mix for name, mix in mixes.items() if mix is not None}

    @property
    def num_parameters(self) -> int:
        """The number of trained parameters, not including the biLM."""
        weights = (weight for weight in self.network.parameters() if weight.requires_grad)
        return sum(weight.numel() for weight in weights)


def _add_probabilities(content: dict[str, Any], chain: TagChain) -> dict[str, Any]:
    content["probabilities"] = [
        chain.probability(position, position + 1) for position in range(len(chain.labels))
    ]
    for span in [*content.get("entities", ()), *content.get("arguments", ())]:
        span["probability"] = chain.probability(span["start"], span["end"])
    return content


def find_shapes(
    settings: FitSettings, *, labels: Labels, words: ChosenWords, layers: LayerSource | None
) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every weight of a network, without allocating memory."""
    with without_weights():
        empty = replace(words, vectors=torch.empty(words.vectors.shape))
        tokens = build_token_input(settings, words=empty, layers=layers)
        network: Any = make_task(settings).build(tokens, labels=labels)
    return {name: tuple(weight.shape) for name, weight in network.state_dict().items()}


def make_task(settings: FitSettings) -> Task:
    """Return the task with its settings."""
    kind = KINDS[settings.kind]
    return kind.task(kind.settings(**settings.task))


def find_batch_size(settings: FitSettings) -> int:
    """Return the maximum number of examples in a batch."""
    most = KINDS[settings.kind].max_batch_size
    wanted = settings.training.batch_size
    return wanted if most is None else min(wanted, most)


def find_words(settings: FitSettings, sentences: Iterable[Sequence[str]]) -> ChosenWords:
    """Choose the network's vocabulary, given the training sentences."""
    check_input(settings)
    counts = Counter(chain.from_iterable(sentences))
    words = settings.words
    if words.file is None:
        return learn_words(counts, dim=words.dim, min_count=words.min_count)
    vectors = read_word_vectors(Path(words.file))
    return choose_words(counts, vectors, max_words=words.max_words)


def check_input(settings: FitSettings) -> None:
    """Refuse settings that leave a network without any input."""
    has_words = settings.words.file is not None or settings.words.dim > 0
    has_elmo = settings.elmo.where in (ElmoPlace.INPUT, ElmoPlace.BOTH)
    if not has_words and not settings.characters.num_filters and not has_elmo:
        raise ConfigError(
            "the network has no input; give it words (words.file, words.dim), characters "
            "(characters.num_filters) or ELMo vectors at its input (elmo.where)"
        )


def build_token_input(
    settings: FitSettings, *, words: ChosenWords, layers: LayerSource | None
) -> TokenInput:
    """Return the input layer of a network: words, characters and ELMo vectors."""
    elmo, characters = settings.elmo, settings.characters

    def make_mix(*positions: ElmoPlace) -> ElmoVectors | None:
        if elmo.where not in positions or layers is None:
            return None
        return ElmoVectors(
            num_layers=layers.num_layers,
            layer_dim=layers.layer_dim,
            use=elmo.layers,
            normalizes=elmo.layer_norm,
            dropout=elmo.dropout,
        )

    has_words = words.vectors.shape[1] > 0
    return TokenInput(
        words=words.vectors if has_words else None,
        # Without a file, vectors are random at first, so they must be trained.
        trains_words=settings.words.trained or settings.words.file is None,
        num_trained_words=words.num_trained,
        characters=CharFilters(
            num_filters=characters.num_filters,
            width=characters.width,
            embedding_dim=characters.embedding_dim,
        )
        if characters.num_filters
        else None,
        below=make_mix(ElmoPlace.INPUT, ElmoPlace.BOTH),
        above=make_mix(ElmoPlace.OUTPUT, ElmoPlace.BOTH),
        dropout=settings.words.dropout,
    )

"""Tagging accuracy of each layer of a biLM and of mixes of layers, compared with baselines.

Shapes: L layers, N tokens of all sentences, T tokens of one, D numbers of a vector.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elmore.embed.layer_choice import ALL
from elmore.probes.linear_probe import Array, Examples, Labels, ProbeSettings, fit_probe
from elmore.probes.tagged_data import TaggedSentence, guess_by_frequency
from elmore.text.word_vectors import WordVectors

MOST_FREQUENT, AVERAGE, LEARNED_MIX = "most frequent tag", "average", "learned mix"
WORD_VECTORS = "word vectors"

Views = dict[str, Array]  # each (N, D)


class LayerEmbedder(Protocol):
    """Anything that computes one vector per token and layer, such as an `Embedder`."""

    @property
    def num_layers(self) -> int:
        """The number of LSTM layers plus one for the token layer."""

    def stream(self, sentences: Iterable[Sequence[str]], *, layers: str) -> Iterator[Array]:
        """Yield one (L, T, D) array per sentence."""


@dataclass(frozen=True, kw_only=True)
class TaggedParts:
    """Tagged sentences for training, early stopping and testing."""

    train: list[TaggedSentence]
    dev: list[TaggedSentence]
    test: list[TaggedSentence]


@dataclass(frozen=True, kw_only=True)
class TagAccuracy:
    """Shares of correctly tagged tokens; unseen tokens do not occur in the training data."""

    overall: float
    unseen: float | None  # None if there are no unseen tokens
    num_tokens: int
    num_unseen: int


@dataclass(frozen=True, kw_only=True)
class TagScore:
    """The accuracy of one view or baseline."""

    name: str
    dev: TagAccuracy
    test: TagAccuracy
    shares: list[float] | None = None  # weight of each layer in a learned mix


def score_views(
    parts: TaggedParts,
    embedder: LayerEmbedder,
    *,
    words: WordVectors | None = None,
    settings: ProbeSettings | None = None,
    on_progress: Callable[[str], None] = lambda _text: None,
) -> list[TagScore]:
    """Score the most frequent tag, word vectors if given, each layer, their mean and their mix."""
    settings = settings or ProbeSettings()
    goals = find_goals(parts)
    scores = [score_frequency(goals)]
    if words is not None:
        static = [[view_words(words, goal.sentences)] for goal in goals]
        scores.append(score_probe(WORD_VECTORS, goals, static, settings, on_progress))
    views = [view_layers(embedder, goal.sentences, on_progress) for goal in goals]
    for name in views[0]:
        alone = [[view[name]] for view in views]
        scores.append(score_probe(name, goals, alone, settings, on_progress))
    together = [[view[name] for name in name_layers(embedder)] for view in views]
    scores.append(score_probe(LEARNED_MIX, goals, together, settings, on_progress))
    return scores


def name_layers(embedder: LayerEmbedder) -> list[str]:
    """Return the names of a model's layers, from the token layer to the top."""
    return [f"layer {number}" for number in range(embedder.num_layers)]


def view_layers(
    embedder: LayerEmbedder,
    sentences: Sequence[TaggedSentence],
    on_progress: Callable[[str], None] = lambda _text: None,
) -> Views:
    """Return the vectors of all tokens as "layer 0", "layer 1", ... and their mean "average"."""
    names = [*name_layers(embedder), AVERAGE]

    def rows() -> Iterator[list[Array]]:
        num_tokens = 0
        for layers in embedder.stream((sentence.tokens for sentence in sentences), layers=ALL):
            num_tokens += layers.shape[1]
            on_progress(f"embedding, {num_tokens:,} tokens")
            yield [*layers, layers.mean(axis=0)]

    return dict(zip(names, store_arrays(rows(), num_arrays=len(names)), strict=True))


def view_words(words: WordVectors, sentences: Sequence[TaggedSentence]) -> Array:
    """Return the static vectors of all tokens."""
    rows = ([words.embed(sentence.tokens)] for sentence in sentences)
    return store_arrays(rows, num_arrays=1)[0]


def store_arrays(rows: Iterable[Sequence[Array]], *, num_arrays: int) -> list[Array]:
    """Concatenate (T, D) rows into (N, D) arrays, each stored in a temporary file.

    The files have no names and disappear with the arrays. They hold float32, because half precision
    could overflow.
    """
    dim = 0
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(num_arrays)]
        for arrays in rows:
            for file, array in zip(files, arrays, strict=True):
                dim = array.shape[1]
                # Not written through a memory map, where a full disk would crash the process.
                file.write(array.astype(np.float32).tobytes())
        for file in files:
            file.flush()
        mapped = [np.memmap(file, dtype=np.float32, mode="r") for file in files]
    return [np.asarray(array).reshape(-1, dim) for array in mapped]


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The gold labels of one part of the data."""

    sentences: list[TaggedSentence]
    tags: list[str]  # in the training data, sorted; labels are indices into this list
    labels: Labels  # (N,), -1 for a tag that is not in the training data
    is_unseen: NDArray[np.bool_]  # (N,)

    def measure(self, found: Labels) -> TagAccuracy:
        """Compare predicted labels with the gold labels."""
        is_right = found == self.labels
        num_unseen = int(self.is_unseen.sum())
        return TagAccuracy(
            overall=float(is_right.mean()),
            unseen=float(is_right[self.is_unseen].mean()) if num_unseen else None,
            num_tokens=len(is_right),
            num_unseen=num_unseen,
        )


def find_goals(parts: TaggedParts) -> list[Goal]:
    """Return the gold labels of train, dev and test, in this order."""
    tags = sorted({tag for sentence in parts.train for tag in sentence.tags})
    seen = {token for sentence in parts.train for token in sentence.tokens}
    return [
        Goal(
            sentences=sentences,
            tags=tags,
            labels=_number((tag for sentence in sentences for tag in sentence.tags), tags),
            is_unseen=np.array(
                [token not in seen for sentence in sentences for token in sentence.tokens]
            ),
        )
        for sentences in (parts.train, parts.dev, parts.test)
    ]


def score_frequency(goals: Sequence[Goal]) -> TagScore:
    """Score a baseline that gives each token its most frequent tag in training."""
    train, dev, test = goals
    dev_accuracy, test_accuracy = (
        goal.measure(_number(guess_by_frequency(train.sentences, goal.sentences), train.tags))
        for goal in (dev, test)
    )
    return TagScore(name=MOST_FREQUENT, dev=dev_accuracy, test=test_accuracy)


def score_probe(
    name: str,
    goals: Sequence[Goal],
    layers: Sequence[Sequence[Array]],
    settings: ProbeSettings,
    on_progress: Callable[[str], None] = lambda _text: None,
) -> TagScore:
    """Fit a probe to one layer or a mix of several; `layers` are those of train, dev and test."""
    train, dev, test = (
        Examples(layers=arrays, labels=goal.labels)
        for arrays, goal in zip(layers, goals, strict=True)
    )
    probe = fit_probe(
        train,
        dev,
        num_tags=len(goals[0].tags),
        settings=settings,
        on_epoch=lambda epoch: on_progress(f"probing {name}, epoch {epoch}"),
    )
    return TagScore(
        name=name,
        dev=goals[1].measure(probe.predict(dev.layers)),
        test=goals[2].measure(probe.predict(test.layers)),
        shares=probe.shares if len(train.layers) > 1 else None,
    )


def _number(tags: Iterable[str], known: Sequence[str]) -> Labels:
    numbers = {tag: number for number, tag in enumerate(known)}
    return np.array([numbers.get(tag, -1) for tag in tags], dtype=np.int64)

"""Word sense disambiguation by nearest mean (Peters et al. 2018, 5.3; Melamud et al. 2016).

A sense is represented by the mean vector of its uses in the training text. A test use gets the
sense of its lemma whose mean has the highest cosine similarity. In a variant, frequent senses get a
bonus: a weight, chosen on development data, times the logarithm of the sense's share of its lemma.

Shapes: L layers, T tokens, D numbers of a vector, V views, K senses of a lemma.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError
from elmore.probes.sense_data import Lemma, SenseSentence, SenseTarget
from elmore.text.word_vectors import WordVectors

Array = NDArray[np.float32]
Views = Mapping[str, Sequence[float]]  # from names to layer weights
Answer = tuple[SenseTarget, str | None]  # None if there is no answer

MOST_FREQUENT, FIRST_SENSE = "most frequent sense", "WordNet first sense"
PRIORS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""Weights to choose from on development data; cosines of senses differ by some hundredths."""
CONTEXT_TOKENS = 10  # on either side of a word, for static vectors
# Context-free vectors have equal similarities, except for the rounding of long sums.
TOLERANCE = 1e-5


@dataclass(frozen=True, kw_only=True, slots=True)
class SenseUse:
    """A use of a word: its lemma and senses, and its vectors."""

    target: SenseTarget
    vectors: Array  # (L, D)


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """How many targets were answered, and how many of them correctly."""

    num_targets: int = 0
    num_answered: int = 0
    num_correct: int = 0

    def __add__(self, other: "Score") -> "Score":
        return Score(
            num_targets=self.num_targets + other.num_targets,
            num_answered=self.num_answered + other.num_answered,
            num_correct=self.num_correct + other.num_correct,
        )

    @property
    def f1(self) -> float:
        """F1 of precision (over answers) and recall (over targets); 0 without targets."""
        # 2PR / (P + R) with P = correct / answered and R = correct / targets.
        return 2 * self.num_correct / max(self.num_answered + self.num_targets, 1)


@dataclass(kw_only=True, slots=True)
class _SenseSum:
    num_uses: int
    vectors: Array  # (L, D); a sum is as good as a mean, because cosines ignore length


class SenseSums:
    """The senses of each lemma in a training text; memory only grows with the number of senses."""

    def __init__(self, uses: Iterable[SenseUse] = ()) -> None:
        self._sums: dict[Lemma, dict[str, _SenseSum]] = {}
        for use in uses:
            self.add(use)

    def add(self, use: SenseUse) -> None:
        """Add one use; a use with several senses counts for each of them."""
        senses = self._sums.setdefault(use.target.entry, {})
        for key in use.target.keys:
            if key in senses:
                senses[key].num_uses += 1
                senses[key].vectors += use.vectors
            else:
                senses[key] = _SenseSum(num_uses=1, vectors=use.vectors.copy())

    def __len__(self) -> int:
        return len(self._sums)

    def keys(self, entry: Lemma) -> list[str]:
        """Return the senses of a lemma, most frequent first, ties in text order."""
        senses = self._sums.get(entry, {})
        return sorted(senses, key=lambda key: -senses[key].num_uses)

    def nearest(
        self, use: SenseUse, weights: NDArray[np.float64], *, prior: float = 0.0
    ) -> list[str]:
        """Return the nearest sense for each row of (V, L) weights; [] for an unknown lemma.

        `prior` is the weight of the logarithm of a sense's share of its lemma.
        """
        keys = self.keys(use.target.entry)
        if not keys:
            return []
        senses = self._sums[use.target.entry]
        sums = np.stack([senses[key].vectors for key in keys]).astype(np.float64)  # (K, L, D)
        means = _normalize(np.einsum("vl,kld->vkd", weights, sums))
        query = _normalize(weights @ use.vectors.astype(np.float64))  # (V, D)
        counts = np.array([senses[key].num_uses for key in keys], dtype=np.float64)
        scores = np.einsum("vd,vkd->vk", query, means) + prior * np.log(counts / counts.sum())
        # Ties go to the most frequent sense: it comes first, and argmax returns the first.
        is_nearest = scores >= scores.max(axis=1, keepdims=True) - TOLERANCE
        return [keys[index] for index in is_nearest.argmax(axis=1)]


def make_views(num_layers: int, *, mixes: Views | None = None) -> dict[str, list[float]]:
    """Return layer weights for each layer, their average, and the given mixes.

    >>> make_views(2, mixes={"tagger": [0.9, 0.1]})
    {'layer 0': [1.0, 0.0], 'layer 1': [0.0, 1.0], 'average': [0.5, 0.5], 'tagger': [0.9, 0.1]}
    """
    views = {f"layer {layer}": np.eye(num_layers)[layer].tolist() for layer in range(num_layers)}
    views["average"] = [1 / num_layers] * num_layers
    for name, weights in (mixes or {}).items():
        if len(weights) != num_layers:
            raise ConfigError(
                f"the mix {name!r} has {len(weights)} weights, but the model has {num_layers} "
                "layers; give one weight per layer"
            )
        views[name] = list(weights)
    return views


def embed_sentences(
    embedder: Embedder, sentences: Iterable[SenseSentence]
) -> Iterator[tuple[SenseSentence, Array]]:
    """Yield sentences with their layers (L, T, D).

    Sentences without targets are skipped, unless the next sentence depends on their state.
    """
    is_alone = embedder.state is StatePolicy.RESET
    waiting: deque[SenseSentence] = deque()

    def read_tokens() -> Iterator[Sequence[str]]:
        for sentence in sentences:
            if sentence.targets or not is_alone:
                waiting.append(sentence)
                yield sentence.tokens

    for layers in embedder.stream(read_tokens(), layers="all"):
        yield waiting.popleft(), layers


def find_uses(embedded: Iterable[tuple[SenseSentence, Array]]) -> Iterator[SenseUse]:
    """Yield the targets of sentences; targets of several tokens get the mean of their vectors."""
    for sentence, layers in embedded:
        for target in sentence.targets:
            vectors = layers[:, target.start : target.end].mean(axis=1)
            yield SenseUse(target=target, vectors=vectors)


def find_static_uses(sentences: Iterable[SenseSentence], words: WordVectors) -> Iterator[SenseUse]:
    """Yield targets with the mean static vector of the surrounding words, as a single layer.

    A word's own static vector is the same in every use, so it cannot distinguish senses.
    """
    for sentence in sentences:
        for target in sentence.targets:
            before = sentence.tokens[max(target.start - CONTEXT_TOKENS, 0) : target.start]
            after = sentence.tokens[target.end : target.end + CONTEXT_TOKENS]
            known = [token for token in (*before, *after) if words.find(token) is not None]
            vector = words.embed(known).sum(axis=0) / max(len(known), 1)
            yield SenseUse(target=target, vectors=vector[np.newaxis])


def answer_views(
    uses: Iterable[SenseUse],
    trained: SenseSums,
    *,
    views: Views,
    first_senses: Mapping[Lemma, str] | None = None,
    prior: float = 0.0,
) -> dict[str, list[Answer]]:
    """Answer test data by every view.

    A lemma that is not in training gets WordNet's first sense, or no answer without `first_senses`.
    """
    weights = np.array(list(views.values()), dtype=np.float64)  # (V, L)
    answers: dict[str, list[Answer]] = {name: [] for name in views}
    for use in uses:
        first = (first_senses or {}).get(use.target.entry)
        keys: list[str | None] = [*trained.nearest(use, weights, prior=prior)]
        for name, key in zip(views, keys or [first] * len(views), strict=True):
            answers[name].append((use.target, key))
    return answers


def score_views(
    uses: Iterable[SenseUse],
    trained: SenseSums,
    *,
    views: Views,
    first_senses: Mapping[Lemma, str] | None = None,
    prior: float = 0.0,
) -> dict[str, Score]:
    """Score every view on test data; see `answer_views`."""
    answers = answer_views(uses, trained, views=views, first_senses=first_senses, prior=prior)
    return {name: score_answers(own) for name, own in answers.items()}


def choose_prior(
    uses: Sequence[SenseUse],
    trained: SenseSums,
    *,
    weights: Sequence[float],
    first_senses: Mapping[Lemma, str] | None = None,
) -> float:
    """Return the prior of PRIORS with the best F1 on development data, of equals the smallest."""

    def find_f1(prior: float) -> float:
        views = {"mix": weights}
        scores = score_views(uses, trained, views=views, first_senses=first_senses, prior=prior)
        return scores["mix"].f1

    return max(PRIORS, key=find_f1)


def answer_baselines(
    targets: Iterable[SenseTarget],
    trained: SenseSums,
    *,
    first_senses: Mapping[Lemma, str] | None = None,
) -> dict[str, list[Answer]]:
    """Answer by a lemma's most frequent sense, and by its first sense in WordNet."""
    names = [MOST_FREQUENT] if first_senses is None else [MOST_FREQUENT, FIRST_SENSE]
    answers: dict[str, list[Answer]] = {name: [] for name in names}
    for target in targets:
        first = (first_senses or {}).get(target.entry)
        most_frequent = next(iter(trained.keys(target.entry)), first)
        for name, key in zip(names, [most_frequent, first], strict=False):
            answers[name].append((target, key))
    return answers


def score_baselines(
    targets: Iterable[SenseTarget],
    trained: SenseSums,
    *,
    first_senses: Mapping[Lemma, str] | None = None,
) -> dict[str, Score]:
    """Score the baselines; see `answer_baselines`."""
    answers = answer_baselines(targets, trained, first_senses=first_senses)
    return {name: score_answers(own) for name, own in answers.items()}


def score_answers(answers: Sequence[Answer]) -> Score:
    """Count the answers that are one of their target's senses."""
    return Score(
        num_targets=len(answers),
        num_answered=sum(key is not None for _, key in answers),
        num_correct=sum(key in target.keys for target, key in answers),
    )


def find_macro_f1(answers: Sequence[Answer]) -> float:
    """Return the mean F1 of all senses that occur, each counting the same however rare it is.

    A target with several senses counts as the one that was answered, if that is among them, and
    otherwise as its first.
    """
    gold: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    for target, key in answers:
        is_right = key in target.keys
        gold[key if is_right and key is not None else target.keys[0]] += 1
        if key is not None:
            answered[key] += 1
            correct[key] += is_right
    senses = gold.keys() | answered.keys()
    return sum(2 * correct[key] / (gold[key] + answered[key]) for key in senses) / max(
        len(senses), 1
    )


def _normalize(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale vectors to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)

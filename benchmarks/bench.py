"""Shared by the cases of the engine benchmark: models, contestants and rows of the table."""

import inspect
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

import torch

from benchmarks.machine import GemmLimit
from benchmarks.models import (
    CONFIGS,
    convolution_flops,
    count_steps,
    dense_flops,
    lstm_flops,
    table_flops,
)
from benchmarks.peers_method import PeersMethod, pad_sentences
from benchmarks.sentences import Sentences, choose_window, take_tokens
from benchmarks.timing import Contestant, Timing, take_turns
from elmore.config import ModelConfig
from elmore.embed.embedder import Embedder
from elmore.errors import ElmoreError
from elmore.text.batches import NUM_MARKERS
from elmore.weights.elmo_model import ElmoModel, new_model

LIMIT = "limit"
PEERS = "peers' method"
PEERS_SORTED = "peers' method, sorted"
PRECISIONS = ("f32", "bf16", "int8")
PEERS_BATCH = 64  # sentences; AllenNLP's default batch size


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One contestant's time, compared with the limit, another contestant or nothing."""

    case: str
    contestant: str
    timing: Timing
    num_tokens: int
    flops: int
    against: str | None = None
    other: Timing | None = None  # None if it is compared with the limit

    @property
    def gflops(self) -> float:
        """Work per second."""
        return self.flops / self.timing.median / 1e9

    def ratio(self, limit_gflops: float) -> float | None:
        """Return the fraction of the limit, or the speedup over the other contestant."""
        if self.against == LIMIT:
            return self.gflops / limit_gflops
        return None if self.other is None else self.other.median / self.timing.median


@dataclass(kw_only=True)
class Bench:
    """Shared by the cases: the text, the models, and the notes below the table."""

    sentences: Sentences
    repeats: int
    original_tokens: int
    small_tokens: int
    limit: GemmLimit
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = cache(_make_model)
        self.peers = cache(lambda name: PeersMethod(self.model(name).bilm))

    @cached_property
    def window(self) -> Sentences:
        """32 sentences of about 25 tokens."""
        return choose_window(self.sentences, num_sentences=32, mean_tokens=25)

    def corpus(self, name: str) -> Sentences:
        """Several batches, in the order of the text."""
        wanted = self.original_tokens if name == "original" else self.small_tokens
        return take_tokens(iter(self.sentences), num_tokens=wanted)

    def embedders(self, name: str) -> dict[str, Embedder]:
        """One per precision that this version of elmore and this CPU support."""
        made = {"f32": Embedder(self.model(name))}
        for precision in PRECISIONS[1:]:
            if "precision" not in inspect.signature(Embedder).parameters:
                self.note(f"skipped {precision}: this elmore has no `Embedder(precision=)`")
                continue
            try:
                made[precision] = Embedder(self.model(name), precision=precision)
            except ElmoreError as error:
                self.note(f"skipped {precision}: {error}")
        return made

    def race(self, *contestants: Contestant, times: int = 1) -> dict[str, Timing]:
        """Time contestants in turns, and measure the limit in every round."""
        return take_turns(contestants, repeats=self.repeats * times, after_round=self.limit.look)

    def note(self, text: str) -> None:
        """Add a note below the table, once."""
        if text not in self.notes:
            self.notes.append(text)


def _make_model(name: str) -> ElmoModel:
    return new_model(CONFIGS[name], seed=0)


def make_row(
    case: str,
    timings: dict[str, Timing],
    contestant: str,
    against: str | None = None,
    *,
    num_tokens: int,
    flops: int,
) -> Row:
    """Compare a contestant with another one, the limit or nothing."""
    return Row(
        case=case,
        contestant=contestant,
        timing=timings[contestant],
        num_tokens=num_tokens,
        flops=flops,
        against=against,
        other=timings.get(against or ""),
    )


def peers_contestant(
    bench: Bench, model: str, sentences: Sentences, *, name: str = PEERS
) -> Contestant:
    """Spell, run and extract vectors with the peers' method."""
    run = partial(embed_as_peers, bench.peers(model), bench.model(model))
    return Contestant(name=name, run=partial(run, sentences), warm_up=partial(run, sentences[:4]))


def sort_sentences(sentences: Sentences) -> Sentences:
    """Sort by length: the peers do not, but a careful user can."""
    return sorted(sentences, key=len)


@torch.inference_mode()
def embed_as_peers(peers: PeersMethod, model: ElmoModel, sentences: Sentences) -> list[object]:
    """Return one array per sentence, from batches in the given order."""
    arrays: list[object] = []
    for start in range(0, len(sentences), PEERS_BATCH):
        char_ids, lengths = pad_sentences(sentences[start : start + PEERS_BATCH], model.speller)
        layers = peers(char_ids, lengths)
        arrays += [
            layers[:, row, 1 : length - 1].numpy().copy()
            for row, length in enumerate(lengths.tolist())
        ]
    return arrays


def cold_contestant(name: str, embedder: Embedder, sentences: Sentences) -> Contestant:
    """Embed with an empty cache."""
    return Contestant(
        name=name,
        prepare=embedder.clear_cache,
        run=partial(embedder.embed, sentences, layers="all"),
        warm_up=partial(embedder.embed, sentences[:4], layers="all"),
    )


def warm_contestant(name: str, embedder: Embedder, sentences: Sentences) -> Contestant:
    """Embed with a full cache; the first, untimed run fills it."""
    return Contestant(name=name, run=partial(embedder.embed, sentences, layers="all"))


def cold_flops(config: ModelConfig, sentences: Sentences) -> int:
    """Count the LSTMs of all tokens and the encoding of distinct ones."""
    words = {token for sentence in sentences for token in sentence}
    encoding = dense_flops(config, len(words)) + table_flops(config, words)
    return lstm_flops(config, count_steps(sentences)) + encoding


def peers_flops(config: ModelConfig, sentences: Sentences) -> int:
    """Count what the peers' method computes: padding is encoded but not read by the LSTMs."""
    num_encoded = 0
    for start in range(0, len(sentences), PEERS_BATCH):
        batch = sentences[start : start + PEERS_BATCH]
        num_encoded += len(batch) * (max(map(len, batch)) + NUM_MARKERS)
    encoding = dense_flops(config, num_encoded) + convolution_flops(config, num_encoded)
    return lstm_flops(config, count_steps(sentences)) + encoding


def count_tokens(sentences: Sentences) -> int:
    """Count tokens without markers."""
    return sum(map(len, sentences))

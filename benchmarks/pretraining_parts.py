"""Shared by the pretraining benchmarks: a corpus, settings and the trainers.

All methods start from the same weights, read the same windows and compare with the same negatives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from benchmarks.plain_trainer import Method, PlainNegatives, PlainTrainer, PlainWindow
from elmore.corpus.corpus import Corpus, open_corpus
from elmore.lm.distributed import Group
from elmore.lm.network import make_model, make_softmax
from elmore.lm.objective import NEGATIVES_KEY, choose_sampler
from elmore.lm.perplexity import LossTotals, measure_losses
from elmore.lm.settings import OptimizerSettings, PretrainSettings, load_settings
from elmore.lm.streams import Streams
from elmore.lm.trainer import Trainer, count_steps
from elmore.model.random_numbers import make_generator
from elmore.model.word_softmax import WordSoftmax
from elmore.text.batches import NUM_MARKERS, Document
from elmore.weights.elmo_model import ElmoModel, new_model

CONFIGS = Path(__file__).parents[1] / "configs"


@dataclass(frozen=True)
class Case:
    """A model to be trained on a corpus."""

    settings: PretrainSettings
    corpus: Corpus

    @classmethod
    def open(cls, corpus: Path, *, config: str | Path, changes: Sequence[str] = ()) -> "Case":
        """Read settings from a file, or from `configs/` by name."""
        path = CONFIGS / f"{config}.toml" if isinstance(config, str) else config
        return cls(load_settings(path, changes), open_corpus(corpus))

    def make_parts(self) -> tuple[ElmoModel, WordSoftmax]:
        """Return the untrained model and softmax, the same each time."""
        elmo = make_model(self.settings, self.corpus)
        softmax = make_softmax(self.settings, elmo.config, counts=self.corpus.counts)
        assert isinstance(softmax, WordSoftmax), "the plain trainer has no adaptive softmax"
        return elmo, softmax

    def make_trainer(self, group: Group) -> Trainer:
        """Return elmore's trainer, alone or as one of several processes."""
        return Trainer(self.settings, self.corpus, *self.make_parts(), group=group)

    def lasting(self, num_tokens: int) -> "Case":
        """Return the case with enough steps to predict about this many tokens."""
        training, part = self.settings.training, self.corpus.train
        share = (
            1 - part.num_sentences / part.num_symbols
        )  # the last token of a sentence has no target
        num_steps = max(1, round(num_tokens / (training.rows * training.window * share)))
        training = replace(training, num_epochs=1e9, max_steps=num_steps)
        return replace(self, settings=replace(self.settings, training=training))


class Windows:
    """The windows and negatives of elmore's trainer, as plain tensors."""

    def __init__(self, case: Case) -> None:
        settings = case.settings
        self.seed = settings.training.seed
        self.streams = Streams(
            case.corpus.train, num_rows=settings.training.rows, window=settings.training.window
        )
        self.speller = make_model(settings, case.corpus).speller
        num_words = len(case.corpus.vocabulary)
        sampler = choose_sampler(settings.softmax, num_words=num_words)
        if sampler is None:
            raise SystemExit(
                f"{num_words} words are compared with all at once, and the plain trainer samples; "
                "add --set softmax.kind=sampled --set softmax.num_negatives=..., fewer than words"
            )
        self.sampler = sampler

    def read(self, step: int) -> tuple[PlainWindow, PlainNegatives]:
        """Return the inputs and negatives of a step, counted from 0."""
        window = self.streams.read(step)
        char_ids = self.speller.spell(window.tokens, with_markers=True).char_ids
        assert char_ids is not None
        assert len(char_ids) == len(window.tokens) + NUM_MARKERS
        negatives = self.sampler.draw(make_generator(self.seed, NEGATIVES_KEY, step))
        return (
            PlainWindow(
                char_ids=char_ids,
                inputs=torch.from_numpy(window.positions),
                targets=torch.from_numpy(window.targets),
                has_target=torch.from_numpy(window.is_predicted),
            ),
            PlainNegatives(words=negatives.words, log_expected=negatives.log_expected),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """The result of a step."""

    num_predictions: int  # of one direction
    loss: float  # per prediction, the mean of both directions


class ElmoreRun:
    """Elmore's trainer, step by step."""

    def __init__(self, case: Case) -> None:
        self.corpus = case.corpus
        self.trainer = case.make_trainer(Group(device=torch.device("cpu")))

    def step(self) -> Step:
        """Read a window and run a step."""
        result = self.trainer.step([])
        loss = result.total_loss / (2 * max(result.num_predictions, 1))
        return Step(num_predictions=result.num_predictions, loss=loss)

    def measure(self, documents: list[Document]) -> LossTotals:
        """Measure held-out text with the full softmax and state carried within a document."""
        elmo, softmax = self.trainer.elmo, self.trainer.softmax
        elmo.eval()
        totals = measure_losses(elmo, softmax, self.corpus.vocabulary, documents=documents)
        elmo.train()
        return totals


class PlainRun:
    """The plain trainer, step by step, with the learning rates of elmore's."""

    def __init__(self, case: Case) -> None:
        settings = case.settings.optimizer
        self.corpus = case.corpus
        self.windows = Windows(case)
        elmo, self._softmax = case.make_parts()
        torch.manual_seed(case.settings.training.seed)  # of its dropout
        self.trainer = PlainTrainer(
            elmo.bilm,
            self._softmax,
            method=Method(settings.name),
            weight_decay=settings.weight_decay,
            dropout=case.settings.training.dropout,
            max_gradient_norm=settings.max_gradient_norm,
        )
        self.settings = settings
        self.num_steps = count_steps(case.settings, self.windows.streams)
        self._num_done = 0
        # Measured without clipping of cells and outputs, since it was trained without.
        unbounded = replace(elmo.config.lstm, cell_clip=None, output_clip=None)
        self._elmo = new_model(replace(elmo.config, lstm=unbounded), seed=0)

    def step(self) -> Step:
        """Read a window and run a step."""
        window, negatives = self.windows.read(self._num_done)
        rate = find_learning_rate(self.settings, self._num_done, num_steps=self.num_steps)
        loss = self.trainer.step(window, negatives, learning_rate=rate)
        self._num_done += 1
        return Step(num_predictions=window.num_predictions, loss=loss)

    def measure(self, documents: list[Document]) -> LossTotals:
        """Measure held-out text with elmore, on a copy of the weights."""
        self.trainer.copy_to(self._elmo.bilm, self._softmax)
        return measure_losses(
            self._elmo, self._softmax, self.corpus.vocabulary, documents=documents
        )


def find_learning_rate(settings: OptimizerSettings, step: int, *, num_steps: int) -> float:
    """Return the learning rate of a step counted from 0: linear warm-up, then linear decay."""
    warmup_steps = min(settings.warmup_steps, num_steps // 4)
    if step < warmup_steps:
        return settings.learning_rate * (step + 1) / warmup_steps
    way = (step - warmup_steps) / max(1, num_steps - warmup_steps)
    return settings.learning_rate * (1 + min(way, 1.0) * (settings.final_share - 1))

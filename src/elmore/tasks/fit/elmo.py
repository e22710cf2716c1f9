"""Where a training's layers come from: no biLM, one that is frozen, or one that learns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from elmore.embed.embedder import Embedder
from elmore.embed.layer_cache import LayerCache
from elmore.embed.layer_source import LayerSource
from elmore.tasks.fit.data import TaskData, find_sentences
from elmore.tasks.fit.domain import DomainText, check_start, check_text, transfer
from elmore.tasks.fit.folder import DOMAIN, ElmoSource
from elmore.tasks.fit.progress import FitObserver
from elmore.tasks.fit.settings import ElmoPlace, ElmoSettings, ElmoTraining
from elmore.tasks.inputs.trained_layers import TrainedLayers
from elmore.tasks.task import Task
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model
from elmore.weights.seen_characters import find_seen_characters


@dataclass(frozen=True, kw_only=True)
class ElmoChoice:
    """Which biLM, and where its layers are kept."""

    name: str | None = None  # a path or hub id; None is the model that comes with elmore
    cache: LayerCache | None = None  # None: the usual place
    domain: Path | None = None
    """Where a biLM that reads the task's text first is kept; trainings may share it."""
    renews_domain: bool = False
    """Fine-tune that one anew, if a training begins anew."""

    @property
    def source(self) -> str | None:
        """The name, whole if it is a path, so that it means the same in any working folder."""
        try:
            path = Path(self.name or "").expanduser()
            return str(path.resolve()) if self.name and path.exists() else self.name
        except (OSError, RuntimeError):  # a name too long, or the home of nobody
            return self.name

    @property
    def fingerprint(self) -> str:
        """Of the biLM as it is now: another may come to have its name."""
        return self._facts[0]

    @property
    def seen_characters(self) -> frozenset[str] | None:
        """Those that the biLM can have learned from; None if that is not known."""
        return self._facts[1]

    @cached_property
    def _facts(self) -> tuple[str, frozenset[str] | None]:
        model = load_model(self.source)
        return model.fingerprint(), find_seen_characters(model, self.source)

    def find_seen_characters(self, settings: ElmoSettings) -> frozenset[str] | None:
        """Return the characters that the biLM knows, if settings use it and that is known."""
        return None if settings.where is ElmoPlace.NONE else self.seen_characters

    def describe(self, settings: ElmoSettings) -> dict[str, Any] | None:
        """Return what makes one training another."""
        if settings.where is ElmoPlace.NONE:
            return None
        return {"name": self.source, "fingerprint": self.fingerprint}


class LayerOpener:
    """Opens the layers of one training; afterwards it knows which biLM they are of."""

    def __init__(
        self,
        settings: ElmoSettings,
        choice: ElmoChoice,
        *,
        folder: Path,
        observer: FitObserver,
        device: str | torch.device = "cpu",
    ) -> None:
        self.settings = settings
        self.choice = choice
        self.folder = folder
        self.observer = observer
        self.device = torch.device(device)  # of the biLM: where it computes layers, or learns
        self.source: ElmoSource | None = None
        self.perplexity: dict[str, float] | None = None
        self._elmo: ElmoModel | None = None

    @property
    def domain(self) -> Path:
        """Where a biLM that read the task's text is kept; of each number of epochs another."""
        parent = self.choice.domain or self.folder / DOMAIN
        return parent / f"{self.settings.finetune_epochs:g}-epochs"

    def check(self, *, is_cleared: bool = False) -> None:
        """Find out whether the biLM can be used, before anything is written.

        `is_cleared` says that what was fine-tuned before will be removed.
        """
        if self.settings.where is ElmoPlace.NONE:
            return
        self.observer.on_stage("loading the biLM")
        if self.settings.finetune_epochs:
            check_start(self.choice.source, None if is_cleared else self.domain)
        else:
            self._elmo = load_model(self.choice.source)

    def check_text(self, task: Task, data: TaskData) -> None:
        """Find out whether a biLM that read the task's text read this one."""
        if self.settings.where is not ElmoPlace.NONE and self.settings.finetune_epochs:
            check_text(self.domain, self._read_text(task, data), elmo=self.choice.fingerprint)

    def open(
        self, task: Task, data: TaskData, *, chosen: Sequence[int] | None = None
    ) -> LayerSource | None:
        """Return the layers of all sentences of the data; of training, of the examples `chosen`."""
        if self.settings.where is ElmoPlace.NONE:
            return None
        name, elmo = self.choice.source, self._elmo
        if self.settings.finetune_epochs:
            name = str(self._transfer(task, data))
        if elmo is None:
            elmo = load_model(name)
        self.source = ElmoSource(name=name, fingerprint=elmo.fingerprint())
        if self.settings.training is ElmoTraining.TASK:
            return TrainedLayers(elmo)

        parts: dict[str, Iterable[Any]] = dict(data.parts)
        if chosen is not None:
            parts["train"] = (data.train[number] for number in chosen)
        sentences = (find_sentences(task, part) for part in parts.values())
        cache = self.choice.cache or LayerCache()
        return cache.open(
            lambda: Embedder(elmo.to(self.device)),
            chain.from_iterable(sentences),
            fingerprint=self.source.fingerprint,
            device=self.device,
            precision=self.settings.precision,
            on_progress=self.observer.on_stage,
        )

    def _transfer(self, task: Task, data: TaskData) -> Path:
        self.observer.on_stage("fine-tuning the biLM on the task's text")
        domain = transfer(
            self.choice.source,
            self.domain,
            self._read_text(task, data),
            elmo=self.choice.fingerprint,
            epochs=self.settings.finetune_epochs,
            device=str(self.device),
        )
        self.perplexity = domain.perplexity
        return domain.folder

    def _read_text(self, task: Task, data: TaskData) -> DomainText:
        """Return all of the training text, whatever share of its labels is learned from."""
        return DomainText(
            train=lambda: find_sentences(task, data.train),
            dev=lambda: find_sentences(task, data.dev),
        )

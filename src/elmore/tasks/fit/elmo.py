"""Where a training's layers come from: no biLM, one that is frozen, or one that learns."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from elmore.embed.embedder import Embedder
from elmore.tasks.fit.data import TaskData, find_sentences
from elmore.tasks.fit.domain import check_start, transfer
from elmore.tasks.fit.folder import DOMAIN, ElmoSource
from elmore.tasks.fit.progress import FitObserver
from elmore.tasks.fit.settings import ElmoPlace, ElmoSettings, ElmoTraining
from elmore.tasks.inputs.layer_cache import LayerCache
from elmore.tasks.inputs.layer_source import LayerSource
from elmore.tasks.inputs.trained_layers import TrainedLayers
from elmore.tasks.task import Task
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model


@dataclass(frozen=True, kw_only=True)
class ElmoChoice:
    """Which biLM, and where its layers are kept."""

    name: str | None = None  # a path or hub id; None is the model that comes with elmore
    cache: LayerCache | None = None  # None: the usual place
    domain: Path | None = None
    """Where a biLM that reads the task's text first is kept; trainings may share it."""

    @property
    def source(self) -> str | None:
        """The name, whole if it is a path, so that it means the same in any working folder."""
        try:
            path = Path(self.name or "").expanduser()
            return str(path.resolve()) if self.name and path.exists() else self.name
        except (OSError, RuntimeError):  # a name too long, or the home of nobody
            return self.name

    def describe(self, settings: ElmoSettings) -> dict[str, Any] | None:
        """Return what makes one training another."""
        if settings.where is ElmoPlace.NONE:
            return None
        return {"name": self.source}


class LayerOpener:
    """Opens the layers of one training; afterwards it knows which biLM they are of."""

    def __init__(
        self, settings: ElmoSettings, choice: ElmoChoice, *, folder: Path, observer: FitObserver
    ) -> None:
        self.settings = settings
        self.choice = choice
        self.folder = folder
        self.observer = observer
        self.source: ElmoSource | None = None
        self.perplexity: dict[str, float] | None = None
        self._elmo: ElmoModel | None = None

    @property
    def domain(self) -> Path:
        """Where a biLM that read the task's text is kept; of each number of epochs another."""
        parent = self.choice.domain or self.folder / DOMAIN
        return parent / f"{self.settings.finetune_epochs:g}-epochs"

    def check(self) -> None:
        """Find out whether the biLM can be used, before anything is written."""
        if self.settings.where is ElmoPlace.NONE:
            return
        self.observer.on_stage("loading the biLM")
        if self.settings.finetune_epochs:
            check_start(self.choice.source, self.domain)
        else:
            self._elmo = load_model(self.choice.source)

    def open(self, task: Task, data: TaskData) -> LayerSource | None:
        """Return the layers of all sentences of the data."""
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

        sentences = (find_sentences(task, part) for part in data.parts.values())
        cache = self.choice.cache or LayerCache()
        return cache.open(
            lambda: Embedder(elmo),
            chain.from_iterable(sentences),
            fingerprint=self.source.fingerprint,
            precision=self.settings.precision,
            on_progress=self.observer.on_stage,
        )

    def _transfer(self, task: Task, data: TaskData) -> Path:
        self.observer.on_stage("fine-tuning the biLM on the task's text")
        domain = transfer(
            self.choice.source,
            self.domain,
            train=find_sentences(task, data.train),
            dev=find_sentences(task, data.dev),
            epochs=self.settings.finetune_epochs,
        )
        self.perplexity = domain.perplexity
        return domain.folder

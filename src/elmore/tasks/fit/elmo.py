"""Where a training run gets ELMo layers: nowhere, a frozen biLM, or one that is trained too."""

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
    """The biLM to use, and where its layers are cached."""

    name: str | None = None  # a path or hub id; None for the model that comes with elmore
    cache: LayerCache | None = None  # None for the default folder
    domain: Path | None = None
    """The folder of a biLM that is fine-tuned on the task's text; training runs can share it."""
    renews_domain: bool = False
    """With --restart, fine-tune the biLM again."""

    @property
    def source(self) -> str | None:
        """The name; if it is a path, as an absolute one, valid in any working directory."""
        try:
            path = Path(self.name or "").expanduser()
            return str(path.resolve()) if self.name and path.exists() else self.name
        except (OSError, RuntimeError):  # the name is too long, or ~user does not exist
            return self.name

    @property
    def fingerprint(self) -> str:
        """A hash of the biLM; the name alone does not identify it."""
        return self._facts[0]

    @property
    def seen_characters(self) -> frozenset[str] | None:
        """The characters in the biLM's training data; None if they are unknown."""
        return self._facts[1]

    @cached_property
    def _facts(self) -> tuple[str, frozenset[str] | None]:
        model = load_model(self.source)
        return model.fingerprint(), find_seen_characters(model, self.source)

    def find_seen_characters(self, settings: ElmoSettings) -> frozenset[str] | None:
        """Return the biLM's `seen_characters`; None if the settings use no biLM."""
        return None if settings.where is ElmoPlace.NONE else self.seen_characters

    def describe(self, settings: ElmoSettings) -> dict[str, Any] | None:
        """Return what identifies the biLM in the plan of a training run; None if it is not used."""
        if settings.where is ElmoPlace.NONE:
            return None
        return {"name": self.source, "fingerprint": self.fingerprint}


class LayerOpener:
    """Provides the layers of one training run; afterwards `source` names the biLM they are from."""

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
        self.device = torch.device(device)  # of the biLM
        self.source: ElmoSource | None = None
        self.perplexity: dict[str, float] | None = None
        self._elmo: ElmoModel | None = None

    @property
    def domain(self) -> Path:
        """The folder of the biLM fine-tuned on the task's text; one per number of epochs."""
        parent = self.choice.domain or self.folder / DOMAIN
        return parent / f"{self.settings.finetune_epochs:g}-epochs"

    def check(self, *, is_cleared: bool = False) -> None:
        """Check that the biLM can be used, before anything is written.

        With `is_cleared`, a biLM that was fine-tuned earlier will be removed.
        """
        if self.settings.where is ElmoPlace.NONE:
            return
        self.observer.on_stage("loading the biLM")
        if self.settings.finetune_epochs:
            check_start(self.choice.source, None if is_cleared else self.domain)
        else:
            self._elmo = load_model(self.choice.source)

    def check_text(self, task: Task, data: TaskData) -> None:
        """Check that a biLM that was fine-tuned earlier was fine-tuned on this text."""
        if self.settings.where is not ElmoPlace.NONE and self.settings.finetune_epochs:
            check_text(self.domain, self._read_text(task, data), elmo=self.choice.fingerprint)

    def open(
        self, task: Task, data: TaskData, *, chosen: Sequence[int] | None = None
    ) -> LayerSource | None:
        """Return the layers of all sentences; of the training examples, only those `chosen`."""
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
        """Return the text of all training examples, even if only a share of them is used."""
        return DomainText(
            train=lambda: find_sentences(task, data.train),
            dev=lambda: find_sentences(task, data.dev),
        )

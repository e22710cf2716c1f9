"""Begin pretraining with the weights of another model instead of random ones."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from elmore.config import ModelConfig
from elmore.corpus.corpus import Corpus
from elmore.errors import ConfigError
from elmore.files.owned_folder import find_changes
from elmore.lm.extension import change_words
from elmore.lm.network import Softmax, complete_config, make_softmax
from elmore.lm.settings import PretrainSettings, SoftmaxKind
from elmore.lm.starting_point import StartingPoint, describe, load_start
from elmore.model.adaptive_softmax import AdaptiveSoftmax
from elmore.model.word_softmax import WordSoftmax
from elmore.weights.elmo_model import ElmoModel

MAX_DIFFERENCES_SHOWN = 3


class FirstWeights:
    """The model that a run starts from, and whether its softmax can be used."""

    def __init__(self, source: str | Path, *, folder: Path) -> None:
        _refuse_own_folder(source, folder)
        self.source = source
        self.folder = folder
        self.start: StartingPoint = load_start(source)
        self._about: Mapping[str, Any] = {}  # what the settings say about the new model

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the weights, by which a resumed run recognizes them."""
        return self.start.elmo.fingerprint()

    def complete(self, settings: PretrainSettings) -> PretrainSettings:
        """Take the architecture of the model, which that of the settings must not contradict."""
        config = self.start.elmo.config
        self._about = settings.model.get("about", {})
        known = config.to_json()
        ModelConfig.from_json({**known, "about": {**known["about"], **self._about}})  # or an error
        if set(settings.model) - {"about"}:
            self._check_architecture(settings.model, config)
        model = {name: value for name, value in known.items() if name != "format"}
        return replace(settings, model=model)

    def keeps_softmax(self, settings: PretrainSettings, corpus: Corpus) -> bool:
        """Return whether the model's softmax is over the words of the corpus."""
        return self._fits(settings) and self.start.words == corpus.vocabulary

    def changes_words(self, settings: PretrainSettings, corpus: Corpus) -> bool:
        """Return whether the model's softmax can be used for the words that it knows."""
        has_words = isinstance(self.start.softmax, WordSoftmax)
        return has_words and self._fits(settings) and self.start.words != corpus.vocabulary

    def make_parts(self, settings: PretrainSettings, corpus: Corpus) -> tuple[ElmoModel, Softmax]:
        """Return the network, and its softmax or a new one."""
        elmo, softmax = self.start.elmo, self.start.softmax
        elmo.config = describe(elmo.config, corpus, self.folder, command="pretrain")
        elmo.config = replace(elmo.config, about=replace(elmo.config.about, **self._about))
        if softmax is not None and self.keeps_softmax(settings, corpus):
            return elmo, softmax
        if isinstance(softmax, WordSoftmax) and self.changes_words(settings, corpus):
            return elmo, change_words(
                softmax,
                old_words=self.start.words,
                words=corpus.vocabulary,
                counts=corpus.counts,
            )
        return elmo, make_softmax(settings, elmo.config, counts=corpus.counts)

    def explain(self, settings: PretrainSettings, corpus: Corpus) -> str:
        """Return a sentence for the user about where the weights come from."""
        if self.keeps_softmax(settings, corpus):
            return f"starting from {self.source} with its softmax"
        if self.changes_words(settings, corpus):
            num_known = len(set(self.start.words) & set(corpus.vocabulary))
            return (
                f"starting from {self.source} with its softmax, which has {num_known:,} of the "
                f"{len(corpus.vocabulary):,} words of the corpus"
            )
        reason = "it has none" if self.start.softmax is None else "it is of another kind"
        return f"starting from {self.source} with a new softmax, because {reason}"

    def _fits(self, settings: PretrainSettings) -> bool:
        """Return whether the model has a softmax of the kind that the settings ask for."""
        is_adaptive = settings.softmax.kind is SoftmaxKind.ADAPTIVE
        softmax = self.start.softmax
        return softmax is not None and isinstance(softmax, AdaptiveSoftmax) == is_adaptive

    def _check_architecture(self, model: Any, config: ModelConfig) -> None:
        wanted = complete_config(
            model,
            num_characters=len(self.start.elmo.characters),
            num_words=len(self.start.elmo.words),
        )
        here, there = ({**one.to_json(), "about": None} for one in (wanted, config))
        # How long tokens are cut is a property of published models that settings rarely mention.
        for one in (here, there):
            if one.get("characters"):
                one["characters"] = {**one["characters"], "splits_characters": None}
        differences = find_changes(there, here)
        if not differences:
            return
        shown = [
            text.replace(" was ", " is ", 1).replace(" and is now ", " in the model and ", 1)
            for text in list(differences.values())[:MAX_DIFFERENCES_SHOWN]
        ]
        num_more = len(differences) - len(shown)
        more = f", and {num_more} more differ" if num_more else ""
        raise ConfigError(
            f"the settings describe another architecture than {self.source}: "
            f"{', '.join(shown)} in the settings{more}; give settings of the same architecture, or "
            "a settings file without [model], which takes that of the model"
        )


def _refuse_own_folder(source: str | Path, folder: Path) -> None:
    path = Path(source)
    if path.exists() and path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"the model {source} is in {folder}; give another folder for the run")

"""The model that training starts from: its biLM, and its softmax if it has one."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from elmore.config import ModelConfig
from elmore.corpus.corpus import Corpus
from elmore.errors import ModelError
from elmore.lm.extension import check_extension, extend_softmax
from elmore.lm.language_model import NoSoftmaxError, load_language_model
from elmore.lm.network import Softmax, initialize_softmax
from elmore.model.word_softmax import WordSoftmax
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model
from elmore.wording import count


@dataclass(frozen=True, kw_only=True)
class StartingPoint:
    """A model, and its words if it has a softmax."""

    elmo: ElmoModel
    softmax: Softmax | None
    words: list[str]

    def to(self, device: torch.device | str) -> "StartingPoint":
        """Move to a device, in place."""
        self.elmo.to(device)
        if self.softmax is not None:
            self.softmax.to(device)
        return self

    def make_parts(self, corpus: Corpus) -> tuple[ElmoModel, Softmax]:
        """Return the network and a softmax over the vocabulary of the corpus."""
        if self.softmax is None:
            dim = self.elmo.config.lstm.output_dim
            softmax = WordSoftmax(num_words=len(corpus.vocabulary), dim=dim)
            initialize_softmax(softmax, counts=corpus.counts, seed=1)
            return self.elmo, softmax
        check_extension(self.words, corpus.vocabulary, corpus=str(corpus.folder))
        if not isinstance(self.softmax, WordSoftmax):
            if len(corpus.vocabulary) > len(self.words):
                raise ModelError(
                    "words cannot be added to an adaptive softmax; use --max-new-words 0, or a "
                    "corpus prepared without --extend"
                )
            return self.elmo, self.softmax
        return self.elmo, extend_softmax(
            self.softmax, words=corpus.vocabulary, counts=corpus.counts
        )


def load_start(source: str | Path | None) -> StartingPoint:
    """Load a model in any format, with its softmax if it has one; by default, elmore's own."""
    try:
        loaded = load_language_model(source)
    except NoSoftmaxError:
        return StartingPoint(elmo=load_model(source), softmax=None, words=[])
    return StartingPoint(elmo=loaded.elmo, softmax=loaded.softmax, words=loaded.words)


def describe(
    config: ModelConfig, corpus: Corpus, folder: Path, *, command: str = "finetune"
) -> ModelConfig:
    """Name the original model and the new text in the card of the new model."""
    about = config.about
    tokens = count(corpus.train.num_tokens, "token")
    text = f"{tokens} of text (documents: {corpus.train.num_documents:,})"
    return replace(
        config,
        about=replace(
            about,
            name=folder.resolve().name,
            source=f"elmore {command}, from {about.name}",
            trained_on=f"{about.trained_on or 'unknown text'}; then {text}",
            notes=None,
        ),
    )

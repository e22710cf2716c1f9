"""Continue training a model on text of a domain, with the domain's own words added.

Models without a softmax, such as HDF5 weights, get a new one that is trained from scratch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmore.corpus.corpus import Corpus
from elmore.corpus.sample import sample_documents
from elmore.files.atomic import replace_json
from elmore.lm.finish import REPORT, RunReport
from elmore.lm.language_model import load_language_model
from elmore.lm.metrics import RunObserver
from elmore.lm.network import Softmax
from elmore.lm.perplexity import LossTotals, measure_losses
from elmore.lm.pretrain import pretrain_model
from elmore.lm.run import MODEL
from elmore.lm.settings import PretrainSettings, read_settings
from elmore.lm.starting_point import describe, load_start
from elmore.text.batches import Document
from elmore.text.vocabulary import UNKNOWN_WORD
from elmore.weights.elmo_model import ElmoModel


@dataclass(frozen=True, kw_only=True)
class FinetuneReport:
    """What fine-tuning changed on the held-out text of the domain."""

    run: RunReport
    before: LossTotals | None  # over the domain's vocabulary
    after: LossTotals | None
    before_shared: LossTotals | None  # over the model's old vocabulary; new words count as unknown
    after_shared: LossTotals | None
    num_new_words: int

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON."""
        numbers = {
            name: None if totals is None else totals.perplexity
            for name, totals in (
                ("before", self.before),
                ("after", self.after),
                ("before_with_old_words", self.before_shared),
                ("after_with_old_words", self.after_shared),
            )
        }
        return {
            **self.run.to_json(),
            "num_new_words": self.num_new_words,
            "perplexity": numbers,
        }


def make_settings(elmo: ElmoModel, changes: Mapping[str, Any]) -> PretrainSettings:
    """Return the settings of a run that starts from a model."""
    model = {name: value for name, value in elmo.config.to_json().items() if name != "format"}
    return read_settings({**changes, "model": model})


def finetune_model(
    source: str | Path | None,
    corpus: Corpus,
    folder: str | Path,
    *,
    settings: PretrainSettings,
    observer: RunObserver | None = None,
    restart: bool = False,
    device: str = "cpu",
) -> FinetuneReport | None:
    """Train in `folder`, resuming a run found there; return None in all but the first process."""
    folder = Path(folder)
    start = load_start(source)
    num_old_words = len(start.words)
    start.elmo.config = describe(start.elmo.config, corpus, folder)
    run = pretrain_model(
        settings,
        corpus,
        folder,
        observer=observer,
        restart=restart,
        device=device,
        make_parts=start.make_parts,
    )
    if run is None:
        return None
    documents = sample_documents(corpus.heldout, max_tokens=settings.run.final_tokens)
    after = load_language_model(folder / MODEL).to(device)
    before = load_start(source).to(device) if num_old_words else None  # `start` has been trained
    report = FinetuneReport(
        run=run,
        num_new_words=len(corpus.vocabulary) - num_old_words,
        before=_measure(*before.make_parts(corpus), corpus, documents) if before else None,
        after=_measure(after.elmo, after.softmax, corpus, documents),
        before_shared=_measure(*before.make_parts(corpus), corpus, documents, num_old_words)
        if before
        else None,
        after_shared=_measure(after.elmo, after.softmax, corpus, documents, num_old_words)
        if before
        else None,
    )
    replace_json(folder / REPORT, report.to_json())
    return report


def _measure(
    elmo: ElmoModel,
    softmax: Softmax,
    corpus: Corpus,
    documents: Sequence[Document],
    num_shared: int | None = None,
) -> LossTotals | None:
    """Measure the loss on held-out text; words from `num_shared` on count as unknown."""
    if not documents:
        return None
    if num_shared is None or num_shared == len(corpus.vocabulary):
        return measure_losses(elmo, softmax, corpus.vocabulary, documents=documents)
    return measure_losses(
        elmo,
        softmax,
        corpus.vocabulary,
        documents=documents,
        num_shared=num_shared,
        unknown_id=corpus.vocabulary.index(UNKNOWN_WORD),
    )

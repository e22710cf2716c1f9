"""The end of a run: final measurements, the rest state, and a model folder with its card."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from elmore.config import About
from elmore.corpus.sample import sample_documents, sample_stretches
from elmore.corpus.sources import records_inputs, split_by_input
from elmore.files.atomic import replace_json
from elmore.lm.language_model import LanguageModel
from elmore.lm.network import find_log_shares
from elmore.lm.perplexity import LossTotals
from elmore.lm.rest_state import (
    MeasureFrom,
    StartReport,
    choose_strength,
    compare_starts,
    compute_rest_state,
    store_rest_state,
)
from elmore.lm.run import MODEL, Run
from elmore.text.batches import Document
from elmore.wording import count

REPORT = "report.json"
# With more files than this, they are not measured one by one.
MAX_SOURCES = 30


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The results of a run."""

    folder: Path
    reason: str
    step: int
    weights_step: int  # the step of the best measurement if `run.patience` was set
    tokens: int
    seconds: float
    heldout: LossTotals | None  # state carried within documents, as in training
    starts: StartReport | None  # loss from zeros, from the rest state and with carried state
    sources: dict[str, LossTotals]  # held-out text by input file, if there are several

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON."""
        return {
            "model": str(self.folder / MODEL),
            "reason": self.reason,
            "step": self.step,
            "weights_step": self.weights_step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "heldout": _describe(self.heldout),
            "cold_start": None
            if self.starts is None
            else {
                "zeros": _describe(self.starts.zeros),
                "rest": _describe(self.starts.rest),
                "carried": _describe(self.starts.carried),
                "rest_strength": self.starts.strength,
            },
            "sources": {name: _describe(totals) for name, totals in self.sources.items()},
        }


def finish_run(run: Run, *, reason: str) -> RunReport:
    """Make the final measurements, set the rest state and write the model folder."""
    weights_step = run.load_best_weights()
    run.observer.on_stage("final measurements")
    documents = sample_documents(run.corpus.heldout, max_tokens=run.settings.run.final_tokens)
    starts = _set_rest_state(run, documents) if run.settings.run.rest_tokens else None
    heldout = starts.carried if starts else run.measure(documents) if documents else None
    report = RunReport(
        folder=run.folder,
        reason=reason,
        step=run.progress.step,
        weights_step=weights_step,
        tokens=run.progress.tokens,
        seconds=run.progress.seconds,
        heldout=heldout,
        starts=starts,
        sources=_measure_sources(run),
    )
    run.group.run_on_first(lambda: save_model(run, report))
    run.observer.on_stage("final measurements", 1.0)
    return report


def _measure_sources(run: Run) -> dict[str, LossTotals]:
    """Measure `run.heldout_tokens` of each held-out source separately."""
    if not records_inputs(run.corpus):
        return {}
    parts = split_by_input(run.corpus, run.corpus.heldout)
    if not 1 < len(parts) <= MAX_SOURCES:
        return {}
    return {
        name: run.measure(sample_documents(part, max_tokens=run.settings.run.heldout_tokens))
        for name, part in parts.items()
    }


def _set_rest_state(run: Run, documents: Sequence[Document]) -> StartReport | None:
    """Set the model's rest state; return its effect on held-out text."""
    bilm = run.trainer.elmo.bilm
    found = run.group.run_on_first(lambda: _compute_mean_state(run))
    shared = run.group.share_tensors(dict(zip(("hidden", "cell"), found or (), strict=False)))
    mean = shared["hidden"].to(bilm.initial_hidden), shared["cell"].to(bilm.initial_cell)
    if not documents:
        store_rest_state(bilm, *mean)
        return None

    def measure(text: Sequence[Document]) -> MeasureFrom:
        return lambda state, initial: run.measure(text, state=state, initial_state=initial)

    strength = choose_strength(measure(_sample_for_choice(run)), mean)
    rest = mean[0] * strength, mean[1] * strength
    starts = compare_starts(measure(documents), bilm=bilm, rest=rest)
    store_rest_state(bilm, *rest)
    return replace(starts, strength=strength)


def _compute_mean_state(run: Run) -> tuple[Tensor, Tensor]:
    text = sample_documents(run.corpus.train, max_tokens=run.settings.run.rest_tokens)
    return compute_rest_state(run.trainer.elmo.bilm, run.trainer.elmo.speller, text)


def _sample_for_choice(run: Run) -> list[Document]:
    """Return held-out text: half from the beginnings of documents, half from anywhere in the text.

    In a corpus of articles and books, most documents are articles but most tokens are from books.
    """
    heldout, max_tokens = run.corpus.heldout, math.ceil(run.settings.run.heldout_tokens / 2)
    by_documents = sample_documents(heldout, max_tokens=max_tokens)
    return by_documents + sample_stretches(heldout, max_tokens=max_tokens)


def save_model(run: Run, report: RunReport) -> None:
    """Write the model folder, its card and the report."""
    elmo = run.trainer.elmo.cpu().eval()
    about = elmo.config.about
    elmo.config = replace(
        elmo.config,
        about=replace(
            about,
            name=run.folder.resolve().name if about.name == About().name else about.name,
            source="elmore pretrain" if about.source == About().source else about.source,
            trained_on=about.trained_on or _describe_text(run),
            is_trained=True,
            training=describe_training(run, report),
        ),
    )
    language_model = LanguageModel(
        elmo=elmo,
        softmax=run.trainer.softmax.cpu().eval(),
        words=run.corpus.vocabulary,
        log_shares=find_log_shares(run.corpus.counts),
    )
    # The model may be published, so leave out local paths.
    facts = {name: fact for name, fact in report.to_json().items() if name != "model"}
    language_model.save(run.folder / MODEL, run=facts)
    replace_json(run.folder / REPORT, report.to_json())


def _describe_text(run: Run) -> str:
    train = run.corpus.train
    return (
        f"{count(train.num_tokens, 'token')} of text (sentences: {train.num_sentences:,}, "
        f"documents: {train.num_documents:,})"
    )


def describe_training(run: Run, report: RunReport) -> str:
    """Return the section of a model card about training."""
    settings = run.settings
    is_older = report.weights_step != report.step
    epochs = report.step / run.trainer.streams.steps_per_epoch
    rows = [
        (
            "steps",
            f"{report.step:,}, each of {settings.training.rows} rows x {settings.training.window} "
            "symbols"
            + (f"; the weights are those of step {report.weights_step:,}" if is_older else ""),
        ),
        ("tokens predicted", f"{report.tokens:,}, {epochs:.2f} epochs"),
        ("hours", f"{report.seconds / 3600:.2f}"),
        (
            "optimizer",
            f"{settings.optimizer.name}, learning rate {settings.optimizer.learning_rate:g}",
        ),
        ("softmax", f"{len(run.corpus.vocabulary):,} words"),
    ]
    totals = {"held out, state carried within a document": report.heldout}
    if report.starts is not None:
        totals["held out, every sentence from zeros"] = report.starts.zeros
        totals["held out, every sentence from the rest state"] = report.starts.rest
    totals |= {f"held out, {name}": source for name, source in report.sources.items()}
    measured = [(name, total) for name, total in totals.items() if total is not None]
    return "\n".join(
        [
            "## Training",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in rows),
            *(
                [
                    "",
                    "| perplexity | forward | backward | both |",
                    "|---|---|---|---|",
                    *(
                        f"| {name} | {total.forward_perplexity:.2f} | "
                        f"{total.backward_perplexity:.2f} | {total.perplexity:.2f} |"
                        for name, total in measured
                    ),
                    "",
                    f"Measured with the full softmax on {measured[0][1].num_predictions:,} "
                    "predictions (tokens and sentence ends); "
                    f"{100 * measured[0][1].unknown_share:.1f} % of the tokens are outside the "
                    "vocabulary.",
                ]
                if measured
                else ["", "No text was held out, so perplexity was not measured."]
            ),
        ]
    )


def _describe(totals: LossTotals | None) -> dict[str, Any] | None:
    if totals is None:
        return None
    return {
        "forward_perplexity": totals.forward_perplexity,
        "backward_perplexity": totals.backward_perplexity,
        "perplexity": totals.perplexity,
        "bits_per_character": totals.bits_per_character,
        "num_predictions": totals.num_predictions,
    }

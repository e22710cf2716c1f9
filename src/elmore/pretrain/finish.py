"""The end of a run: last measurements, the rest state, and a model folder with a filled card."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmore.atomic_file import replace_file
from elmore.config import About
from elmore.pretrain.network import find_log_shares
from elmore.pretrain.perplexity import LossTotals
from elmore.pretrain.rest_state import StartReport, compare_starts, compute_rest_state
from elmore.pretrain.rest_state import store_rest_state as store
from elmore.pretrain.run import MODEL, Run
from elmore.pretrain.sample import sample_documents
from elmore.weights.json_file import write_json
from elmore.weights.language_model import LanguageModel

REPORT = "report.json"


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What came of a run."""

    folder: Path
    reason: str
    step: int
    tokens: int
    seconds: float
    heldout: LossTotals | None  # state carried within documents, as in training
    starts: StartReport | None  # what a cold start costs, with zeros and with the rest state

    def to_json(self) -> dict[str, Any]:
        """Return its numbers for a program."""
        return {
            "model": str(self.folder / MODEL),
            "reason": self.reason,
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "heldout": _describe(self.heldout),
            "cold_start": None
            if self.starts is None
            else {
                "zeros": _describe(self.starts.zeros),
                "rest": _describe(self.starts.rest),
                "carried": _describe(self.starts.carried),
            },
        }


def finish_run(run: Run, *, reason: str) -> RunReport:
    """Measure the model once more, give it its rest state, and write its folder."""
    run.take_best()
    run.observer.on_stage("last measurements")
    settings = run.settings.run
    documents = sample_documents(run.corpus.heldout, max_tokens=settings.final_tokens)
    heldout = run.measure(documents) if documents else None
    report = RunReport(
        folder=run.folder,
        reason=reason,
        step=run.progress.step,
        tokens=run.progress.tokens,
        seconds=run.progress.seconds,
        heldout=heldout,
        starts=None,
    )
    results: list[RunReport] = []

    def rest_and_save() -> None:
        starts = _rest(run, documents[:]) if settings.rest_tokens else None
        results.append(replace(report, starts=starts))
        save_model(run, results[0])

    run.group.first_does(rest_and_save)
    run.observer.on_stage("last measurements", 1.0)
    return results[0] if results else report


def _rest(run: Run, documents: list[Any]) -> StartReport | None:
    """Give the model its rest state; tell what that changes on held-out text."""
    elmo, softmax = run.trainer.elmo, run.trainer.softmax
    elmo.eval()
    text = sample_documents(run.corpus.train, max_tokens=run.settings.run.rest_tokens)
    rest = compute_rest_state(elmo.bilm, elmo.speller, text)
    words = run.corpus.vocabulary
    starts = (
        compare_starts(elmo, softmax, words, documents=documents, rest=rest) if documents else None
    )
    store(elmo.bilm, *rest)
    return starts


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
            training=write_training(run, report),
        ),
    )
    language_model = LanguageModel(
        elmo=elmo,
        softmax=run.trainer.softmax.cpu().eval(),
        words=run.corpus.vocabulary,
        log_shares=find_log_shares(run.corpus.counts),
    )
    language_model.save(run.folder / MODEL, run=report.to_json())
    with replace_file(run.folder / REPORT) as temporary:
        write_json(temporary, report.to_json())


def _describe_text(run: Run) -> str:
    train = run.corpus.train
    return (
        f"{train.num_tokens:,} tokens in {train.num_sentences:,} sentences and "
        f"{train.num_documents:,} documents"
    )


def write_training(run: Run, report: RunReport) -> str:
    """Return the part of a model's card that tells of its training."""
    settings = run.settings
    epochs = report.step / run.trainer.streams.steps_per_epoch
    rows = [
        ("steps", f"{report.step:,} of {settings.training.rows} x {settings.training.window}"),
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
                    f"Measured with the full softmax on {measured[0][1].num_predictions:,} tokens, "
                    f"{100 * measured[0][1].unknown_share:.1f} % of them outside the vocabulary.",
                ]
                if measured
                else ["", "No text was held out, so nothing is known of its perplexity."]
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

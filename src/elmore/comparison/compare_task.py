"""Run a comparison and keep its report up to date."""

from collections.abc import Callable, Sequence
from pathlib import Path

from elmore.comparison.compare import PlannedRun, plan_runs, run_comparison, summarize
from elmore.comparison.report_folder import write_report
from elmore.comparison.results import Comparison
from elmore.errors import ConfigError
from elmore.tasks.data.parts import Parts
from elmore.tasks.fit.elmo import ElmoChoice
from elmore.tasks.fit.plan import REPORT
from elmore.tasks.fit.progress import FitObserver
from elmore.tasks.fit.settings import FitSettings
from elmore.weights.loading import load_model
from elmore.wording import count

# Called with the number of a run from 1, how many there are, the run, and whether it was done.
OnRun = Callable[[int, int, PlannedRun, bool], None]


def compare_task(
    settings: FitSettings,
    parts: Parts,
    folder: Path,
    *,
    variants: Sequence[str],
    shares: Sequence[float],
    num_seeds: int,
    command: str,
    model: str | None = None,
    observer: FitObserver | None = None,
    on_run: OnRun | None = None,
    restart: bool = False,
    accept: bool = False,
    device: str = "cpu",
) -> Comparison:
    """Train what is not trained yet, and write report.html and report.json to `folder`.

    `command` is shown on the page: running it again gives the same report.
    """
    runs = plan_runs(settings, variants=variants, shares=shares, num_seeds=num_seeds)
    was_done: dict[str, bool] = {}

    def announce(number: int, run: PlannedRun) -> None:
        was_done[run.name] = not restart and (run.find_folder(folder) / REPORT).is_file()
        if on_run is not None:
            on_run(number + 1, len(runs), run, was_done[run.name])

    elmo = load_model(model)
    name, fingerprint = elmo.config.about.name, elmo.fingerprint()
    del elmo
    finished = []
    for pair in run_comparison(
        runs,
        parts,
        folder,
        elmo=ElmoChoice(name=model),
        observer=observer,
        on_run=announce,
        restart=restart,
        accept=accept,
        device=device,
    ):
        finished.append(pair)
        # Plots take seconds: draw them only after a new run and at the end.
        if not was_done[pair[0].name] or len(finished) == len(runs):
            comparison = summarize(finished, settings, elmo=name, fingerprint=fingerprint)
            state = _describe_state(len(finished), len(runs))
            write_report(comparison, folder, command=command, state=state)
    return comparison


def read_shares(percents: Sequence[str | float]) -> list[float]:
    """Read percentages of the training data.

    >>> read_shares(["10", 100])
    [0.1, 1.0]
    """
    shares = []
    for percent in percents:
        try:
            share = float(percent) / 100
        except (TypeError, ValueError):
            share = 0.0
        if not 0 < share <= 1:
            raise ConfigError(f"--shares has {percent!r:.40}; give percents above 0 and up to 100")
        shares.append(share)
    return shares


def _describe_state(num_finished: int, num_runs: int) -> str | None:
    if num_finished == num_runs:
        return None
    return (
        f"{num_finished} of {count(num_runs, 'training run')} finished; if the comparison was "
        "stopped, rerun the command below to resume it."
    )

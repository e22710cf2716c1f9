"""Write a report: `report.json` for programs, `report.html` for people."""

from pathlib import Path

from elmore.comparison.drawing import Plot
from elmore.comparison.page import make_page
from elmore.comparison.plots import draw_plots
from elmore.comparison.result_files import write_comparison
from elmore.comparison.results import Comparison
from elmore.errors import MissingExtraError
from elmore.files.atomic import replace_file

RESULTS = "report.json"
PAGE = "report.html"


def write_report(
    comparison: Comparison, folder: Path, *, command: str, state: str | None = None
) -> Path:
    """Write both files and return the path of the page; without matplotlib it has no plots.

    `state` is a sentence about what is still running.
    """
    write_comparison(comparison, folder / RESULTS)
    plots: list[Plot] = []
    note = None
    try:
        plots = draw_plots(comparison)
    except MissingExtraError as error:
        note = f"Plots are missing: {error}"
    page = make_page(comparison, plots=plots, command=command, note=note, state=state)
    with replace_file(folder / PAGE) as temporary:
        # Lone surrogates, from file names in other encodings, become question marks.
        temporary.write_text(page, encoding="utf-8", errors="replace")
    return folder / PAGE

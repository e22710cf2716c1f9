"""Write the results of comparisons into docs/results/tasks.md, with a copy of their reports.

    python -m recipes.tasks.write_page comparisons

Reads comparisons/NAME/report.json for every name in TASKS, as far as they exist. Without an
argument, it reads the reports in docs/results/tasks.
"""

import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmore.comparison.drawing import make_figure, plot_settings, to_svg
from elmore.comparison.layers import LayerRow, find_layer_rows, name_layer
from elmore.comparison.plots import draw_row, draw_sample_efficiency
from elmore.comparison.result_files import read_comparison
from elmore.comparison.results import Comparison
from elmore.comparison.summary import Cell, summarize
from elmore.comparison.wording import (
    NOTHING,
    format_interval,
    format_mean,
    format_percent,
    format_signed,
)
from recipes.pages import fill, write_table

ROOT = Path(__file__).parents[2]
PAGE, FOLDER = ROOT / "docs" / "results" / "tasks.md", ROOT / "docs" / "results" / "tasks"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredTask:
    """A comparison of the page, and what the paper found with its own model and data."""

    title: str
    score: str
    paper: tuple[float, float] | None = None
    """Without ELMo and with it (Peters et al., 2018, table 1)."""
    paper_layers: tuple[float, float, float] | None = None
    """Without, the top layer alone, all layers (table 2, development data)."""
    paper_places: tuple[float, float, float] | None = None
    """At the input, both, the output (table 3, development data)."""


TASKS = {
    "squad": MeasuredTask(
        title="question answering",
        score="F1",
        paper=(81.1, 85.8),
        paper_layers=(80.8, 84.7, 85.2),
        paper_places=(85.1, 85.6, 84.8),
    ),
    "snli": MeasuredTask(
        title="entailment",
        score="accuracy",
        paper=(88.0, 88.7),
        paper_layers=(88.1, 89.1, 89.5),
        paper_places=(88.9, 89.5, 88.7),
    ),
    "srl": MeasuredTask(
        title="semantic roles",
        score="F1",
        paper=(81.4, 84.6),
        paper_layers=(81.6, 84.1, 84.8),
        paper_places=(84.7, 84.3, 80.9),
    ),
    "coref": MeasuredTask(title="coreference", score="mean F1", paper=(67.2, 70.4)),
    "ner": MeasuredTask(title="entities", score="F1", paper=(90.15, 92.22)),
    "sst": MeasuredTask(title="sentiment", score="accuracy", paper=(51.4, 54.7)),
    "tags": MeasuredTask(title="parts of speech", score="accuracy"),
}


def collect(folder: Path) -> None:
    """Copy the reports of comparisons, with file names in place of paths.

    Runs of NAME_more, such as those on parts of the training data, are added to those of NAME.
    """
    FOLDER.mkdir(exist_ok=True)
    for name in TASKS:
        paths = [folder / name / "report.json", *sorted(folder.glob(f"{name}_*/report.json"))]
        reports = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]
        if not reports:
            continue
        whole = reports[0]
        for report in reports[1:]:
            if difference := find_difference(whole, report):
                raise SystemExit(f"{name}: reports differ in {difference}; rerun one of them")
        runs = {
            (run["variant"], run["share"], run["seed"]): run
            for report in reports
            for run in report["runs"]
        }
        whole["runs"] = list(runs.values())
        whole["perplexity"] = next(filter(None, (each["perplexity"] for each in reports)), None)
        words = whole["settings"]["words"]
        words["file"] = words["file"] and Path(words["file"]).name
        text = json.dumps(whole, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def find_difference(report: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Return what makes the runs of two reports incomparable, if anything."""
    if report["elmo_fingerprint"] != other["elmo_fingerprint"]:
        return "the biLM"
    for part in ("dev", "test"):
        if report["num_examples"].get(part) != other["num_examples"].get(part):
            return part
    for section, values in report["settings"].items():
        others = other["settings"].get(section)
        if not isinstance(values, dict) or not isinstance(others, dict):
            continue  # the kind
        # A setting that an older report lacks had its default value.
        for name in values.keys() & others.keys() - {"seed", "checkpoint_minutes"}:
            pair = values[name], others[name]
            if name == "file":
                pair = tuple(path and Path(path).name for path in pair)
            if pair[0] != pair[1]:
                return f"{section}.{name}"
    return None


def find_cells(comparison: Comparison, *, share: float = 1.0) -> dict[str, Cell]:
    """Return the result of each variant with this share of the training examples, by name."""
    return {cell.variant: cell for cell in summarize(comparison) if cell.share == share}


def show_gains(found: dict[str, Comparison]) -> str:
    """Show one row per task: without ELMo, with ELMo at the input, and the paper."""
    majority: dict[str, float] = read_figures("majority.json")
    rows = []
    for name, comparison in found.items():
        task, cells = TASKS[name], find_cells(comparison)
        without, with_elmo = cells["without"], cells["input"]
        gain = with_elmo.gain
        assert gain is not None
        paper = f"{task.paper[0]} → {task.paper[1]}" if task.paper else NOTHING
        rows.append(
            [
                f"{task.title}, {task.score}",
                f"{without.num_train:,}",
                f"{majority[name]:.1f}" if name in majority else NOTHING,
                show_mean(without),
                show_mean(with_elmo),
                f"{format_signed(gain.points, digits=1)} ({format_interval(gain.interval)})",
                format_percent(gain.error_share),
                paper,
            ]
        )
    header = ["task", "training examples", "majority", "without", "ELMo"]
    header += ["gain (95 %)", "errors removed", "paper"]
    return write_table(header, rows)


def read_figures(name: str) -> dict[str, Any]:
    """Return the results of another script of this recipe, or nothing if it was not run."""
    path = FOLDER / name
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def show_texts(found: dict[str, Comparison]) -> str:
    """Show the biLM's perplexity on the text of each task, lowest first."""
    figures = read_figures("perplexity.json")
    rows = []
    for name, text in sorted(figures.items(), key=lambda item: item[1]["perplexity"]):
        if name not in found:
            continue
        gain = find_cells(found[name])["input"].gain
        assert gain is not None
        rows.append(
            [
                TASKS[name].title,
                f"{text['perplexity']:.0f}",
                format_percent(text["unknown_share"]),
                format_percent(gain.error_share),
            ]
        )
    header = ["task", "perplexity of its text", "outside the vocabulary", "errors removed"]
    return write_table(header, rows)


def show_mean(cell: Cell | None) -> str:
    """Format a score with its deviation, if there is one."""
    return NOTHING if cell is None else format_mean(cell.mean, cell.deviation, digits=1)


def show_variants(found: dict[str, Comparison], variants: dict[str, str], *, need: str) -> str:
    """Show one row per task that has the needed variant, and one column per variant."""
    tried = {name: cells for name in found if need in (cells := find_cells(found[name]))}
    variants = {
        key: title
        for key, title in variants.items()
        if any(key in cells for cells in tried.values())
    }
    rows = []
    for name, cells in tried.items():
        rows.append([TASKS[name].title, *(show_mean(cells.get(key)) for key in variants)])
        paper = find_paper(TASKS[name], variants)
        if paper is not None:
            rows.append(["paper", *paper])
    return write_table(["", *variants.values()], rows)


def find_paper(task: MeasuredTask, variants: dict[str, str]) -> list[str] | None:
    """Return the row of the paper, if it has these variants."""
    known = {}
    if "top" in variants and task.paper_layers:
        known = dict(zip(("without", "top", "input"), task.paper_layers, strict=True))
    elif "output" in variants and task.paper_places:
        known = dict(zip(("input", "both", "output"), task.paper_places, strict=True))
    return [f"{known[key]:.1f}" if key in known else NOTHING for key in variants] if known else None


LAYERS = {
    "without": "without",
    "top": "top layer",
    "average": "mean of layers",
    "input": "learned mix",
}
PLACES = {"without": "without", "input": "input", "both": "both", "output": "output"}


def show_domains(found: dict[str, Comparison]) -> str:
    """Show the effect of fine-tuning the biLM on the task's text first."""
    rows = []
    for name, comparison in found.items():
        cells = find_cells(comparison)
        if "domain" not in cells or comparison.perplexity is None:
            continue
        numbers = [f"{comparison.perplexity[when]:.0f}" for when in ("before", "after")]
        scores = [show_mean(cells[variant]) for variant in ("without", "input", "domain")]
        rows.append([TASKS[name].title, *numbers, *scores])
    header = ["", "perplexity before", "after", "without", "ELMo", "ELMo, fine-tuned"]
    return write_table(header, rows)


def show_shares(found: dict[str, Comparison]) -> str:
    """Show scores by amount of training data, for tasks with more than one amount."""
    rows = []
    for name, comparison in found.items():
        if len(comparison.shares) < 2:
            continue
        for share in comparison.shares:
            cells = find_cells(comparison, share=share)
            if not {"without", "input"} <= cells.keys():
                continue
            gain = cells["input"].gain
            assert gain is not None
            rows.append(
                [
                    TASKS[name].title,
                    f"{cells['input'].num_train:,}",
                    show_mean(cells["without"]),
                    show_mean(cells["input"]),
                    format_signed(gain.points, digits=1),
                ]
            )
    return write_table(["task", "training examples", "without", "ELMo", "gain"], rows)


def show_costs(found: dict[str, Comparison]) -> str:
    """Show how long training took, for each task."""
    rows = []
    for name, comparison in found.items():
        for variant in ("without", "input"):
            runs = comparison.find_runs(variant, 1.0)
            minutes = statistics.median(run.seconds for run in runs) / 60
            epochs = sum(len(run.curve) for run in runs) / len(runs)
            weights = f"{runs[0].num_parameters / 1e6:.2f}M"
            rows.append([TASKS[name].title, variant, weights, f"{epochs:.0f}", f"{minutes:.1f}"])
    return write_table(["task", "variant", "parameters", "epochs", "minutes"], rows)


def draw_mixes(found: dict[str, Comparison], path: Path) -> None:
    """Draw the weight of each layer in the mix, one row per task and position (as in figure 2)."""
    rows: list[tuple[str, LayerRow]] = []
    for name, comparison in found.items():
        for row in find_layer_rows(comparison, share=1.0):
            if row.variant in ("input", "output"):
                rows.append((f"{TASKS[name].title}, {row.position_name}", row))
    rows.sort(key=lambda pair: pair[1].variant)
    num_layers = max(len(row.means) for _, row in rows)
    with plot_settings():
        figure = make_figure(height=0.6 + 0.36 * len(rows))
        axes = figure.subplots()
        for number, (_, row) in enumerate(rows):
            draw_row(axes, row, number)
        axes.set_xlim(-0.5, num_layers - 0.5)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xticks(range(num_layers), [name_layer(k) for k in range(num_layers)])
        axes.set_yticks(range(len(rows)), [label for label, _ in rows])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        path.write_text(to_svg(figure, name="layers"), encoding="utf-8")


def read_reports() -> dict[str, Comparison]:
    """Return the stored comparisons, by name."""
    paths = {name: FOLDER / f"{name}.json" for name in TASKS}
    found = {name: read_comparison(path) for name, path in paths.items() if path.is_file()}
    return {name: comparison for name, comparison in found.items() if is_paired(comparison)}


def is_paired(comparison: Comparison) -> bool:
    """Whether all seeds were trained with ELMo at the input and without it."""
    with_elmo, without = (
        [run.seed for run in comparison.find_runs(variant, 1.0)] for variant in ("input", "without")
    )
    return with_elmo == without != []


def make_tables(found: dict[str, Comparison]) -> dict[str, str]:
    """Return all tables of the page, by name."""
    return {
        "gains": show_gains(found),
        "texts": show_texts(found),
        "layers": show_variants(found, LAYERS, need="top"),
        "places": show_variants(found, PLACES, need="output"),
        "shares": show_shares(found),
        "domains": show_domains(found),
        "costs": show_costs(found),
    }


def main() -> None:
    """Collect the reports, and write the page and its plots."""
    if len(sys.argv) > 1:
        collect(Path(sys.argv[1]))
    found = read_reports()
    tables = make_tables(found)
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
    draw_mixes(found, FOLDER / "layers.svg")
    for name, comparison in found.items():
        if plot := draw_sample_efficiency(comparison):
            (FOLDER / f"shares-{name}.svg").write_text(plot.svg, encoding="utf-8")


if __name__ == "__main__":
    main()

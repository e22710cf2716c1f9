"""Collect the results of runs of several sizes, for write_page.py.

    python recipes/english/compare_sizes.py OUT.json NAME=RUN,BRANCH,RESULTS ...

RUN trained with a constant learning rate; BRANCH is a copy of it with the decay; RESULTS is what
measure.py wrote of BRANCH's model.
"""

import json
import sys
from pathlib import Path
from typing import Any

from elmore.lm.metrics import METRICS, read_metrics


def describe(name: str, run: Path, branch: Path, results: Path) -> dict[str, Any]:
    """Return the curve of a run and the end of its branch."""
    heldout = [line for line in read_metrics(run / METRICS) if line["kind"] == "heldout"]
    end = [line for line in read_metrics(branch / METRICS) if line["kind"] == "heldout"][-1]
    measured = json.loads(results.read_text())
    tags = {score["name"]: 100 * score["test"]["overall"] for score in measured["tags"]}
    return {
        "name": name,
        "curve": [[line["seconds"] / 60, line["perplexity"]] for line in heldout],
        "minutes": end["seconds"] / 60,
        "tokens": end["tokens"],
        "perplexity": end["perplexity"],
        "tags": tags["learned mix"],
        "senses": measured["senses"]["f1"]["average"]["all"],
    }


def main() -> None:
    """Read the arguments and write the file."""
    out, *sizes = sys.argv[1:]
    entries = []
    for size in sizes:
        name, _, paths = size.partition("=")
        entries.append(describe(name, *map(Path, paths.split(","))))
    Path(out).write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    main()

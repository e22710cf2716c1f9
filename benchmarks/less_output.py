"""Measure what smaller vectors cost: bytes, cosine to the original vectors, tags of a linear probe.

    python -m benchmarks.less_output TRAIN.conllu TEST.conllu [--sentences 4000] [--layers average]

Vectors of the English model are written to Parquet files as `elmore embed` writes them, and read
again. The probe is a ridge classifier of the universal tags, trained on the vectors of TRAIN's
first sentences and tested on those of TEST, both in the same form. The PCA is fitted to TRAIN.
Prints a Markdown table.
"""

import argparse
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import elmore
from elmore.embed.projection import find_projection
from elmore.text.files import read_text

RIDGE = 10.0
FORMS: list[tuple[str, dict[str, Any]]] = [
    ("f32", {}),
    ("f16", {"dtype": "f16"}),
    ("int8", {"dtype": "int8"}),
    ("256 dimensions, f32", {"dim": 256}),
    ("128 dimensions, f32", {"dim": 128}),
    ("128 dimensions, f16", {"dim": 128, "dtype": "f16"}),
    ("128 dimensions, int8", {"dim": 128, "dtype": "int8"}),
    ("64 dimensions, int8", {"dim": 64, "dtype": "int8"}),
]


@dataclass(frozen=True, kw_only=True)
class Tagged:
    """Tokenized sentences and the tags of all their tokens."""

    sentences: list[list[str]]
    tags: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.less_output")
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--layers", default="average")
    arguments = parser.parse_args()
    train, test = (read(path, arguments.sentences) for path in (arguments.train, arguments.test))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dims = sorted({how["dim"] for _, how in FORMS if "dim" in how})
        for dim in dims:
            elmore.fit_projection(
                elmore.load(folder / "model" if dim != dims[0] else None),
                train.sentences,
                dim=dim,
                layers=arguments.layers,
                out=folder / "model",
            )
        embedder = elmore.load(folder / "model")
        exact = store(embedder, test, folder, layers=arguments.layers)[0]
        print("| vectors | bytes per token | mean cosine | lowest cosine | tags of the probe, % |")
        print("|---|---:|---:|---:|---:|")
        for label, how in FORMS:
            stored, num_bytes = store(embedder, test, folder, layers=arguments.layers, **how)
            learned, _ = store(embedder, train, folder, layers=arguments.layers, **how)
            restored = stored
            if "dim" in how:
                project = find_projection(embedder, layers=arguments.layers, dim=how["dim"])
                restored = project.restore(stored)
            cosines = cosine(restored, exact)
            accuracy = probe(learned, train.tags, stored, test.tags)
            print(
                f"| {label} | {num_bytes:,.0f} | {cosines.mean():.4f} | {cosines.min():.3f} | "
                f"{100 * accuracy:.2f} |",
                flush=True,
            )


def read(path: Path, max_sentences: int) -> Tagged:
    """Read the first sentences of a CoNLL-U file."""
    sentences = list(islice(read_text(path), max_sentences))
    tags = [tag for sentence in sentences for tag in sentence.tags or []]
    return Tagged(sentences=[sentence.tokens for sentence in sentences], tags=tags)


def store(
    embedder: elmore.Embedder, text: Tagged, folder: Path, **how: Any
) -> tuple[NDArray[np.float32], float]:
    """Write a vector file; return what is read from it, and its bytes per token."""
    path = folder / "vectors.parquet"
    elmore.embed_to_file(embedder, text.sentences, path, **how)
    vectors = np.concatenate([sentence.vectors for sentence in elmore.read_vectors(path)])
    return vectors.astype(np.float32), path.stat().st_size / len(vectors)


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each pair of rows."""
    products = (one * other).sum(axis=1)
    return products / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def probe(
    train: NDArray[np.float32],
    train_tags: list[str],
    test: NDArray[np.float32],
    test_tags: list[str],
) -> float:
    """Return the accuracy of a ridge classifier."""
    names = sorted(set(train_tags))
    targets = np.equal.outer(train_tags, names).astype(np.float64)
    inputs = np.column_stack([train, np.ones(len(train))]).astype(np.float64)
    gram = inputs.T @ inputs + RIDGE * np.eye(inputs.shape[1])
    weights = np.linalg.solve(gram, inputs.T @ targets)
    scores = np.column_stack([test, np.ones(len(test))]) @ weights
    found = np.array(names)[scores.argmax(axis=1)]
    return float((found == np.array(test_tags)).mean())


if __name__ == "__main__":
    main()

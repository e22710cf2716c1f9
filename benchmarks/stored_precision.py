"""Measure the effect of storing a model in half precision on vectors, perplexity and file size.

    python -m benchmarks.stored_precision MODEL TEXT [--max-tokens 20000]

MODEL is a model folder with a softmax, TEXT any text that it was not trained on, of which the first
`--max-tokens` are used. The model is stored as f32, f16 and bf16, and as f16 with the LM head in
int8, and read back. Vectors of single sentences are compared with those of f32: the relative length
of the difference, its maximum and mean over tokens, and the smallest cosine. Perplexity is measured
as by `elmore evaluate`. Prints two Markdown tables.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmore.embed.embedder import Embedder
from elmore.lm.language_model import load_language_model
from elmore.lm.perplexity import LossTotals, measure_losses
from elmore.text.documents import group_documents, limit_sentences
from elmore.text.files import guess_form, read_sentences
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.model_folder import STORES, WEIGHTS, find_store
from elmore.weights.softmax_file import WEIGHTS as SOFTMAX_WEIGHTS

INT8 = "f16, LM head int8"
# Sentences whose vectors are in memory at once.
CHUNK = 100

Document = list[list[str]]


@dataclass(frozen=True, kw_only=True)
class LayerError:
    """The error of a layer's vectors."""

    largest: float  # of the relative differences
    mean: float
    cosine: float  # the smallest


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--max-tokens", type=int, default=20_000)
    arguments = parser.parse_args()
    sentences = read_sentences(arguments.text, form=guess_form(arguments.text))
    limited = limit_sentences(sentences, max_tokens=arguments.max_tokens)
    documents = list(group_documents(limited, by_sentence=False))
    with tempfile.TemporaryDirectory() as name:
        original = load_language_model(arguments.model)
        for store in STORES:
            original.save(Path(name) / store, store=store)
        original.save(Path(name) / INT8, store="f16", store_softmax="int8")
        print(f"The original weights are {find_store(arguments.model / WEIGHTS)}.\n")
        print_vectors(Path(name), documents)
        print()
        print_perplexities(Path(name), documents)


def print_vectors(folder: Path, documents: list[Document]) -> None:
    sentences = [sentence for document in documents for sentence in document]
    print("| stored as | layer | largest difference | mean | smallest cosine |")
    print("|---|---|---|---|---|")
    exact = ElmoModel.from_pretrained(folder / "f32")
    for store in list(STORES)[1:]:
        rounded = ElmoModel.from_pretrained(folder / store)
        for layer, error in enumerate(compare_layers(rounded, exact, sentences)):
            print(
                f"| {store} | {layer} | {error.largest:.4%} | {error.mean:.4%} "
                f"| {error.cosine:.8f} |",
                flush=True,
            )


def print_perplexities(folder: Path, documents: list[Document]) -> None:
    print("| stored as | model, MB | softmax, MB | forward | change | backward | change |")
    print("|---|---|---|---|---|---|---|")
    exact: LossTotals | None = None
    for store in (*STORES, INT8):
        totals = measure(folder / store, documents)
        exact = exact or totals
        sizes = [(folder / store / name).stat().st_size for name in (WEIGHTS, SOFTMAX_WEIGHTS)]
        print(
            f"| {store} | {sizes[0] / 1e6:.2f} | {sizes[1] / 1e6:.2f} "
            f"| {describe_change(totals.forward_perplexity, exact.forward_perplexity)} "
            f"| {describe_change(totals.backward_perplexity, exact.backward_perplexity)} |",
            flush=True,
        )
    assert exact is not None
    print(f"\n{exact.num_predictions:,} predictions in each direction.")


def measure(folder: Path, documents: list[Document]) -> LossTotals:
    model = load_language_model(folder)
    return measure_losses(model.elmo, model.softmax, model.words, documents=documents)


def describe_change(perplexity: float, exact: float) -> str:
    return f"{perplexity:.3f} | {perplexity / exact - 1:+.4%}"


def compare_layers(rounded: ElmoModel, exact: ElmoModel, sentences: Document) -> list[LayerError]:
    """Compare the vectors of all sentences, layer by layer."""
    parts = list(compare_chunks(Embedder(rounded), Embedder(exact), sentences))
    differences, cosines = (np.concatenate(kind, axis=1) for kind in zip(*parts, strict=True))
    return [
        LayerError(largest=float(off.max()), mean=float(off.mean()), cosine=float(cosine.min()))
        for off, cosine in zip(differences, cosines, strict=True)
    ]


def compare_chunks(
    rounded: Embedder, exact: Embedder, sentences: Document
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield relative differences and cosines, each (L, N), of some sentences at a time."""
    for start in range(0, len(sentences), CHUNK):
        chunk = sentences[start : start + CHUNK]
        ours, theirs = (  # (L, N, D) in double precision: near 1, a cosine has few digits left
            np.concatenate(embedder.embed(chunk, layers="all"), axis=1).astype(np.float64)
            for embedder in (rounded, exact)
        )
        lengths = np.linalg.norm(ours, axis=2), np.linalg.norm(theirs, axis=2)
        differences = np.linalg.norm(ours - theirs, axis=2) / lengths[1]
        yield differences, (ours * theirs).sum(axis=2) / (lengths[0] * lengths[1])


if __name__ == "__main__":
    main()

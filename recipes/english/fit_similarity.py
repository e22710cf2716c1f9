"""Compute what `sentence_vectors(pool="similarity")` needs from training text, and store it.

    python -m recipes.english.fit_similarity MODEL TEXT [TEXT ...] [--sentences 12000]

MODEL is a model folder, which gets the files similarity.json and similarity.safetensors. From each
TEXT (one sentence per line), the same number of sentences is taken, at equal distances.
"""

import argparse
from pathlib import Path

import elmore
from elmore.weights.loading import load_model
from elmore.weights.similarity_file import write_similarity


def sample_lines(path: Path, *, num_lines: int) -> list[str]:
    """Return lines at equal distances, without blank ones."""
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    num_lines = min(num_lines, len(lines))
    return [lines[number * len(lines) // num_lines] for number in range(num_lines)]


def main() -> None:
    """Read the arguments and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--sentences", type=int, default=12_000)
    arguments = parser.parse_args()
    share = arguments.sentences // len(arguments.texts)
    lines = [line for path in arguments.texts for line in sample_lines(path, num_lines=share)]
    embedder = elmore.load(arguments.model)
    similarity = embedder.fit_similarity(lines)
    fingerprint = load_model(arguments.model).fingerprint()
    write_similarity(arguments.model, similarity, model=fingerprint)
    print(f"wrote what similarity needs, from {similarity.num_sentences:,} sentences")


if __name__ == "__main__":
    main()

"""Measure the memory that bf16 and int8 save, and the error they cause.

    python -m benchmarks.precision [--model FOLDER] [--text FILE] [--tokens 1000]

The default model has random weights and the original size. Each precision is loaded in a separate
process; memory is what the process uses beyond importing torch. Errors are relative to f32, over
all layers except the first: the largest difference, the relative length of the difference (mean
over tokens), and the smallest cosine. Prints a Markdown table.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.models import CONFIGS
from benchmarks.sentences import load_sentences
from elmore.config import Precision
from elmore.weights.elmo_model import new_model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--tokens", type=int, default=1000)
    arguments = parser.parse_args()
    sentences = load_sentences(arguments.text, num_tokens=arguments.tokens)
    print("| precision | load, s | memory, MB | largest error | relative error | smallest cosine |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = arguments.model or folder / "model"
        if arguments.model is None:
            new_model(CONFIGS["original"], seed=0).save_pretrained(model)
        (folder / "sentences.json").write_text(json.dumps(sentences))
        exact = None
        for precision in Precision:
            report = json.loads(run_apart(precision, model, folder))
            layers = np.load(folder / "layers.npy")[1:]
            exact = layers if exact is None else exact
            print(
                f"| {precision} | {report['seconds']:.1f} | {report['megabytes']:.0f} "
                f"| {describe_error(layers, exact)} |",
                flush=True,
            )


def run_apart(precision: Precision, model: Path, folder: Path) -> str:
    command = [sys.executable, "-c", MEASURE, str(precision), str(model), str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


MEASURE = """
import json, sys, time
from pathlib import Path
import numpy as np, torch
from elmore.embed.embedder import load

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

precision, model, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
torch.randn(64, 64) @ torch.randn(64, 64)
before, started = resident(), time.perf_counter()
embedder = load(model, precision=precision)
seconds = time.perf_counter() - started
sentences = json.loads((folder / "sentences.json").read_text())
embedder.embed(sentences[:4])
megabytes = resident() - before
np.save(folder / "layers.npy", np.concatenate(embedder.embed(sentences, layers="all"), axis=1))
print(json.dumps({"seconds": seconds, "megabytes": megabytes}))
"""


def describe_error(layers: np.ndarray, exact: np.ndarray) -> str:
    """Compare (L, N, D) vectors."""
    off = np.linalg.norm(layers - exact, axis=2) / np.linalg.norm(exact, axis=2)
    lengths = np.linalg.norm(layers, axis=2) * np.linalg.norm(exact, axis=2)
    cosine = (layers * exact).sum(axis=2) / lengths
    return f"{np.abs(layers - exact).max():.4f} | {off.mean():.2%} | {cosine.min():.5f}"


if __name__ == "__main__":
    main()

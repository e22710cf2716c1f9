"""What elmore's commands compute on small inputs: recorded once, compared ever after.

    python -m tests.golden.results

records the files of this folder again. Do that only when a result is meant to change; a change of
structure must pass with the files as they are.
"""

import hashlib
import io
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import elmore
from elmore.cli.app import main

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
TRAINED_MODEL = FOLDER.parent / "models" / "tiny"
SENTENCES = FOLDER / "sentences.txt"  # two documents
TEXT = FOLDER / "text.txt"
DATA = FOLDER / "data"

STATES = ("reset", "document", "stream")
PRECISIONS = ("f32", "bf16", "int8")
LAYERS = ("all", "average", "top", "0", "1")
KERNELS = ("avx512", "avx2", "torch")

# A model small enough that a checkpoint of it has a few kilobytes.
SMALL_MODEL = """
[model.lstm]
num_layers = 2
cell_dim = 12
output_dim = 5

[model.characters]
embedding_dim = 3
max_chars = 9
filters = [[1, 2], [2, 3], [3, 4]]
num_highway_layers = 1

[softmax]
kind = "sampled"
num_negatives = 20

[training]
rows = 4
window = 5
max_steps = 20

[run]
log_steps = 1
heldout_steps = 10
rest_tokens = 100
threads = 1
"""
SMALL_TASK = (
    "task.column=2",
    "task.hidden_dim=5",
    "words.dim=4",
    "words.min_count=1",
    "characters.num_filters=3",
    "training.batch_size=20",
    "training.max_epochs=20",
    "training.min_epoch_steps=1",
    "training.patience=20",
)

Run = Callable[..., str]


def run_command(*arguments: object) -> str:
    """Run `elmore` in this process; return what it printed."""
    printed = io.StringIO()
    with (
        patch.object(sys, "argv", ["elmore", *map(str, arguments)]),
        redirect_stdout(printed),
        redirect_stderr(io.StringIO()),
    ):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
    return printed.getvalue()


def describe_machine(kernel: str) -> str:
    """Name what bits may depend on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        wanted = ("cpu family", "model", "model name")
        lines = [line.split(":") for line in info.read_text().splitlines() if ":" in line]
        facts = {name.strip(): value.strip() for name, value in lines}
        cpu = " ".join(facts.get(name, "") for name in wanted)
    return f"{cpu}; torch {torch.__version__}; {kernel}"


@contextmanager
def kernel_set_to(kernel: str) -> Iterator[None]:
    """Compute with one kernel."""
    before = os.environ.get("ELMORE_KERNEL")
    os.environ["ELMORE_KERNEL"] = kernel
    try:
        yield
    finally:
        if before is None:
            del os.environ["ELMORE_KERNEL"]
        else:
            os.environ["ELMORE_KERNEL"] = before


def embed_text(run: Run, work: Path) -> dict[str, np.ndarray]:
    """Return the vectors of all tokens, by state, precision and layers."""
    found = {}
    for state, precision, layers in product(STATES, PRECISIONS, LAYERS):
        out = work / f"{state}-{precision}-{layers}.npz"
        run(
            "embed", SENTENCES, "--model", TRAINED_MODEL, "--tokenized", "--out", out,
            "--state", state, "--precision", precision, "--layers", layers,
        )  # fmt: skip
        vectors = [sentence.vectors for sentence in elmore.read_vectors(out)]
        found[f"{state}/{precision}/{layers}"] = np.concatenate(vectors, axis=-2)
    return found


def prepare_text(run: Run, work: Path) -> Path:
    """Prepare the text as a corpus."""
    corpus = work / "corpus"
    run(
        "prepare", TEXT, "--tokenized", "--min-count", 1, "--heldout", 0.2, "--processes", 1,
        "--out", corpus,
    )  # fmt: skip
    return corpus


def pretrain_tiny(run: Run, work: Path, corpus: Path) -> list[dict[str, float]]:
    """Return loss and gradient norm of 20 steps of the `tiny` configuration."""
    changes = ("max_steps=20", "rows=8")
    run(
        "pretrain", "tiny", "--corpus", corpus, "--out", work / "tiny",
        *(f"--set=training.{change}" for change in changes),
        "--set=run.log_steps=1", "--set=run.heldout_steps=20", "--set=run.rest_tokens=0",
        "--set=run.threads=1",
    )  # fmt: skip
    return read_curve(work / "tiny")


def pretrain_small(run: Run, work: Path, corpus: Path, *, max_steps: int) -> Path:
    """Train the small model, or resume its run."""
    (work / "small.toml").write_text(SMALL_MODEL)
    folder = work / "run"
    run(
        "pretrain", work / "small.toml", "--corpus", corpus, "--out", folder,
        f"--set=training.max_steps={max_steps}",
        "--set=optimizer.final_share=1", "--set=optimizer.warmup_steps=2",
    )  # fmt: skip
    return folder


def read_curve(folder: Path) -> list[dict[str, float]]:
    """Return what a training run measured, without times."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    names = ("loss", "gradient_norm", "perplexity", "forward_perplexity", "backward_perplexity")
    return [
        {name: line[name] for name in ("step", *names) if name in line}
        for line in lines
        if line["kind"] in ("train", "heldout")
    ]


def fit_tags(run: Run, work: Path) -> Path:
    """Train a tagger for 20 steps on top of the tests' model."""
    folder = work / "task"
    run(
        "fit", "tags", "--data", DATA, "--model", TRAINED_MODEL, "--out", folder,
        *(f"--set={change}" for change in SMALL_TASK),
    )  # fmt: skip
    return folder


def read_task_curve(folder: Path) -> list[dict[str, float]]:
    """Return the loss and dev score of every step."""
    curve = json.loads((folder / "report.json").read_text())["curve"]
    return [{name: point[name] for name in ("step", "loss", "dev")} for point in curve]


def predict_tags(run: Run, folder: Path) -> str:
    """Return what the tagger says of the test part."""
    return run("predict", folder, DATA / "test.txt", "--model", TRAINED_MODEL)


def collect_numbers(run: Run, work: Path) -> dict[str, Any]:
    """Return every number that training computes."""
    corpus = prepare_text(run, work)
    return {
        "pretrain tiny": pretrain_tiny(run, work, corpus),
        "pretrain small": read_curve(pretrain_small(run, work, corpus, max_steps=20)),
        "fit tags": read_task_curve(fit_tags(run, work)),
    }


def digest(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return a checksum of every array's bits."""
    return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}


def record() -> None:
    """Write all files of this folder but the inputs."""
    torch.set_num_threads(1)
    bits: dict[str, dict[str, str]] = {}
    numbers: dict[str, Any] = {}
    for kernel in KERNELS:
        with kernel_set_to(kernel), tempfile.TemporaryDirectory() as name:
            vectors = embed_text(run_command, Path(name))
            bits[describe_machine(kernel)] = digest(vectors)
            numbers[describe_machine(kernel)] = collect_numbers(run_command, Path(name))
            if kernel == "avx2":
                whole = {key: value for key, value in vectors.items() if key.endswith("/all")}
                np.savez(FOLDER / "vectors.npz", **whole)
    (FOLDER / "bits.json").write_text(json.dumps(bits, indent=1) + "\n")
    (FOLDER / "numbers.json").write_text(json.dumps(numbers, indent=1) + "\n")
    with tempfile.TemporaryDirectory() as name:
        record_files(Path(name))


def record_files(work: Path) -> None:
    """Keep one file or folder of every kind that elmore writes."""
    files = FOLDER / "files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    for ending in ("h5", "parquet", "npz"):
        run_command(
            "embed", SENTENCES, "--model", TRAINED_MODEL, "--tokenized", "--layers", "top",
            "--dtype", "float16", "--out", files / f"vectors.{ending}",
        )  # fmt: skip
    corpus = prepare_text(run_command, work)
    shutil.copytree(corpus, files / "corpus")
    shutil.copytree(pretrain_small(run_command, work, corpus, max_steps=10), files / "run")
    task = shutil.copytree(fit_tags(run_command, work), files / "task")
    (files / "predictions.txt").write_text(predict_tags(run_command, task), encoding="utf-8")
    for path in files.rglob(".lock"):
        path.unlink()
    for path in files.rglob("*.json"):  # where they were made is nobody's business
        text = path.read_text(encoding="utf-8")
        for place in (str(work), str(ROOT)):
            text = text.replace(place, "/home/user")
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    record()

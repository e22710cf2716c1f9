"""The pages about other tools run as they are written."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

import elmore
from elmore.weights import loading
from tests import pages

pytestmark = pytest.mark.slow

# The modules that each page needs.
NEEDS = {
    "sklearn.md": ["sklearn", "pandas"],
    "spacy.md": ["spacy"],
    "gensim.md": ["gensim"],
    "tables.md": ["pandas", "polars", "duckdb"],
    "torch.md": [],
    "lightning.md": ["lightning"],
    "onnx.md": ["onnx", "onnxruntime"],
    "sentence_transformers.md": ["sentence_transformers", "datasets", "accelerate"],
    "datasets.md": ["datasets"],
    "engines.md": ["ray", "pyspark", "dask"],  # installed by make test-cluster
    "flair.md": ["flair"],  # installed by make test-integrations
}


def run_spacy(arguments):
    """Run a command of spaCy; train for two steps only, and package without building."""
    spacy_app = import_module("spacy.cli").app
    shorter = {"train": ["--training.max_steps", "2"], "package": ["--build", "none"]}
    arguments = [*arguments, *shorter.get(arguments[0], [])]
    typer.main.get_command(spacy_app).main(arguments, standalone_mode=False)


def run_python(arguments):
    """Run `python -m spacy` here, and an example in a process of its own."""
    if arguments[:2] == ["-m", "spacy"]:
        run_spacy(arguments[2:])
        return
    command = [sys.executable, Path(__file__).parents[2] / arguments[0], *arguments[1:]]
    subprocess.run(command, check=True, capture_output=True)


def test_every_page_is_run():
    assert {path.name for path in (pages.DOCS / "integrations").glob("*.md")} == set(NEEDS)


@pytest.mark.parametrize("page", NEEDS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning:spacy")
@pytest.mark.filterwarnings("ignore:::torch")  # its compiler warns
@pytest.mark.filterwarnings("ignore::FutureWarning:flair")
@pytest.mark.filterwarnings("ignore:::lightning")
@pytest.mark.filterwarnings("ignore:::pyspark")
@pytest.mark.filterwarnings("ignore:::ray")
@pytest.mark.filterwarnings("ignore:::datasets")
@pytest.mark.filterwarnings("ignore:::multiprocess")
# `spacy package` leaves a file open.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_page_runs_as_it_is_written(page, tmp_path, monkeypatch, elmore_command):
    for module in NEEDS[page]:
        if find_spec(module) is None:
            pytest.skip(f"{module} is missing: pip install '.[{page.removesuffix('.md')}]'")
    monkeypatch.chdir(tmp_path)
    pages.write_sample_files(tmp_path)
    Path("words.txt").write_text("bank\nbanks\nriver\nrivers\nmoney\n")
    for part, name in (("train", "train"), ("dev", "testa")):
        Path(f"{part}.iob").write_text(Path(f"conll2003/eng.{name}").read_text())
    shipped = Path(elmore.__file__).parent / "models" / "english"
    monkeypatch.setattr(loading, "DEFAULT_MODEL", shipped)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    for block in pages.find_blocks(f"integrations/{page}"):
        if block.title:
            Path(block.title).write_text(block.text)
    others = {"python": run_python}
    pages.run_page(f"integrations/{page}", elmore_command, others=others)


@pytest.mark.parametrize("page", NEEDS)
def test_a_page_starts_with_five_lines_to_copy(page):
    first, *_ = pages.find_blocks(f"integrations/{page}")
    lines = [line for line in first.text.splitlines() if line]
    assert len(lines) <= 5

"""examples/onnx_without_torch.py gives elmore's vectors, and imports neither torch nor elmore."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is missing: pip install '.[onnx]'")

import numpy as np

import elmore
from elmore.export.onnx import write_onnx
from tests import tiny

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[3] / "examples" / "onnx_without_torch.py"
SENTENCES = ["The café , 日本語 a" + "é" * 40, "Bank"]
WITHOUT = "import sys; sys.modules.update(torch=None, elmore=None); "


@pytest.mark.parametrize("is_published", [True, False])
def test_the_example_prints_the_vectors_of_elmore(is_published, tmp_path):
    model = tiny.model() if is_published else elmore.load_model(tiny.TRAINED_MODEL)
    assert model.config.characters.splits_characters == is_published
    write_onnx(model, tmp_path / "model.onnx")
    program = f"{WITHOUT} import runpy; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", program, EXAMPLE, tmp_path / "model.onnx", *SENTENCES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    tokens = [text.split() for text in SENTENCES]
    assert [line[0] for line in lines] == [token for sentence in tokens for token in sentence]
    found = np.array([[float(number) for number in line[1:5]] for line in lines])
    expected = np.concatenate(elmore.Embedder(model).embed(tokens, layers="top"))[:, :4]
    assert np.abs(found - expected).max() < 6e-5

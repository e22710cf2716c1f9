"""examples/keras_sentiment.py, with Keras's backend of this environment."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tiny import TRAINED_MODEL

PROGRAM = Path(__file__).parents[2] / "examples" / "keras_sentiment.py"
WORDS = {"pos": "a fine film", "neg": "no , it was dull !"}

pytestmark = pytest.mark.skipif(
    find_spec("keras") is None, reason="keras is not installed; it comes with the extra keras"
)


@pytest.mark.slow
def test_a_classifier_is_fitted_saved_and_loaded_with_equal_predictions(tmp_path):
    for part, size in (("train", 200), ("test", 10)):
        for label, words in WORDS.items():
            (tmp_path / part / label).mkdir(parents=True)
            for number in range(size):
                (tmp_path / part / label / f"{number}.txt").write_text(f"{part} {number} : {words}")
    result = subprocess.run(
        [sys.executable, PROGRAM, tmp_path, tmp_path / "saved.keras", TRAINED_MODEL],
        env={"KERAS_BACKEND": "torch", **os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    # As in the notebook: 4 weights of ELMo, and those of the two dense layers.
    assert f"{4 + (48 * 256 + 256) + (256 + 1):,}" in result.stdout
    assert "accuracy 1.000 on 20 reviews" in result.stdout
    assert "the loaded model predicts the same: True" in result.stdout
    assert (tmp_path / "saved.keras").exists()

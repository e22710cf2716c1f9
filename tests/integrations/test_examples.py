"""The taggers in examples/ learn, in a loop of their own and with Lightning."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tiny import TRAINED_MODEL

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("program", ["torch_tagger.py", "lightning_tagger.py"])
def test_a_tagger_learns(program, tmp_path):
    if program == "lightning_tagger.py" and find_spec("lightning") is None:
        pytest.skip("lightning is missing: pip install '.[lightning]'")
    sentences = ["The/D bank/N rose/V", "She/P saw/V a/D river/N", "He/P fell/V"]
    (tmp_path / "tagged.txt").write_text("\n".join(sentences * 5))
    result = subprocess.run(
        [sys.executable, EXAMPLES / program, tmp_path / "tagged.txt", TRAINED_MODEL],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert float(re.search(r"held-out accuracy (\S+)", result.stdout)[1]) == 1.0

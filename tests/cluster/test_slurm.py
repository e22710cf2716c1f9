"""The Slurm script runs every share, with Slurm's variables and without Slurm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import elmore
from tests.cluster.clusters import write_texts
from tests.tiny import TRAINED_MODEL

SCRIPT = Path(__file__).parents[2] / "examples" / "slurm" / "embed.sbatch"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a script for bash")
def test_an_array_embeds_everything(tmp_path):
    texts = write_texts(tmp_path / "texts")
    command = tmp_path / "bin" / "elmore"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m elmore "$@"\n')
    command.chmod(0o755)
    arguments = [
        *(f"{texts}/*.txt", "--model", TRAINED_MODEL, "--pool", "mean"),
        *("--shard-bytes", "9000", "--out", tmp_path / "v"),
    ]
    variables = {
        **os.environ,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "SLURM_ARRAY_TASK_COUNT": "2",
        "SLURM_CPUS_PER_TASK": "1",
    }
    subprocess.run([command, "embed", *arguments, "--plan"], check=True)
    tasks = [
        subprocess.Popen(
            ["bash", SCRIPT, *arguments], env={**variables, "SLURM_ARRAY_TASK_ID": number}
        )
        for number in ("1", "2")
    ]
    assert [task.wait(timeout=240) for task in tasks] == [0, 0]
    sources = {sentence.source for sentence in elmore.read_vectors(tmp_path / "v")}
    assert len(sources) == 4

"""Run a piece of Python in a process of its own, to see what a whole program would do."""

import os
import signal
import subprocess
import sys

import pytest

from tests.kernels import libraries, variants

MOST_SECONDS = 90


def run_python(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """Run a script with the kernels that the tests use, unless `environment` says otherwise."""
    settings = {
        **os.environ,
        "ELMORE_KERNEL_FOLDER": str(variants.GIVEN_FOLDER),
        "PYTHONPATH": os.pathsep.join([str(libraries.ROOT), os.environ.get("PYTHONPATH", "")]),
        **environment,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={name: value for name, value in settings.items() if value},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the children that it waits for
        out, err = process.communicate()
        pytest.fail(f"not done after {MOST_SECONDS} seconds; printed so far: {out}{err}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)

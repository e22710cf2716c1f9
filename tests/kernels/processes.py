"""Run a piece of Python in a process of its own, to see what a whole program would do."""

import os
import subprocess
import sys

from tests.kernels import libraries, variants


def run_python(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """Run a script with the kernels that the tests use, unless `environment` says otherwise."""
    settings = {
        **os.environ,
        "ELMORE_KERNEL_FOLDER": str(variants.GIVEN_FOLDER),
        "PYTHONPATH": os.pathsep.join([str(libraries.ROOT), os.environ.get("PYTHONPATH", "")]),
        **environment,
    }
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={name: value for name, value in settings.items() if value},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

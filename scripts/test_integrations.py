"""Run the tests of libraries that conflict with others, or are large, in environments of their own.

python scripts/test_integrations.py            # all of them
python scripts/test_integrations.py keras      # one
"""

import os
import subprocess
import sys
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "environments"
TEST_PACKAGES = ("pytest>=8.3", "hypothesis>=6.100", "pyyaml")


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What is installed, and what is tested there."""

    packages: tuple[str, ...]
    tests: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    is_isolated: bool = False  # runs without a network but loopback


ENVIRONMENTS = {
    "keras": Environment(
        packages=("keras>=3", "tensorflow-cpu>=2.18"),
        tests=("tests/compat/test_keras.py", "tests/compat/test_keras_example.py"),
        variables={"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"},
    ),
    "originals": Environment(
        packages=(
            "bilm==0.1.post5",
            "elmoformanylangs==0.0.4.post2",
            "overrides<4",  # later versions reject ELMoForManyLangs
            "simple_elmo==0.9.2",
            "tensorflow-cpu>=2.18",
            "tf_keras>=2.18",
        ),
        tests=("tests/compat/test_against_originals.py",),
        variables={"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"},
    ),
    # Flair needs transformers < 5, which excludes sentence-transformers 6.
    "flair": Environment(
        packages=("flair>=0.15,<0.16",),
        tests=(
            "tests/integrations/test_flair.py",
            "tests/recipes/test_integration_recipes.py",
            "tests/integrations/test_guides.py::test_a_page_runs_as_it_is_written[flair.md]",
        ),
    ),
    # Clusters listen to the network, so they get one that leads nowhere. Spark needs Java.
    "cluster": Environment(
        packages=(
            "ray[data]>=2.40",
            "pyspark>=4",
            "datasets>=3",
            "dask[dataframe]",
            "s3fs",
            "moto[server]",
            "polars",
            "duckdb",
        ),
        tests=(
            "tests/cluster",
            "tests/embed/many_files",
            "tests/lm/test_several_machines.py",
            "tests/integrations/test_guides.py::test_a_page_runs_as_it_is_written[engines.md]",
            "tests/integrations/test_guides.py::test_a_page_runs_as_it_is_written[datasets.md]",
        ),
        variables={"ELMORE_CLUSTER_TESTS": "1"},
        is_isolated=True,
    ),
}
ISOLATED = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def can_isolate() -> bool:
    """Return whether network namespaces are allowed here."""
    try:
        return subprocess.run([*ISOLATED, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run_tests(name: str) -> int:
    """Install the environment if necessary, and return pytest's exit status."""
    started = time.monotonic()
    environment = ENVIRONMENTS[name]
    if environment.is_isolated and not can_isolate():
        print(f"{name}: skipped, because network namespaces are not allowed here")
        return 0
    folder = FOLDER / name
    python = folder / "bin" / "python"
    print(f"{name}: {' '.join(environment.packages)}", flush=True)
    if not python.exists():
        venv.create(folder, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*install, "--editable", ".", *TEST_PACKAGES, *environment.packages], cwd=ROOT, check=True
    )
    installed = time.monotonic()
    status = subprocess.run(
        [
            *(ISOLATED if environment.is_isolated else ()),
            *(python, "-m", "pytest", "-q", "-rs", *environment.tests),
        ],
        cwd=ROOT,
        env={**os.environ, **environment.variables},
        check=False,
    ).returncode
    print(
        f"{name}: installed in {installed - started:.0f} s, tested in "
        f"{time.monotonic() - installed:.0f} s",
        flush=True,
    )
    return status


def main(names: list[str]) -> None:
    """Test in the named environments, or in all of them; the exit status is 1 if any test fails."""
    for name in names:
        if name not in ENVIRONMENTS:
            sys.exit(f"unknown environment {name!r}; choose one of: {', '.join(ENVIRONMENTS)}")
    statuses = [run_tests(name) for name in names or ENVIRONMENTS]
    sys.exit(int(any(statuses)))


if __name__ == "__main__":
    main(sys.argv[1:])

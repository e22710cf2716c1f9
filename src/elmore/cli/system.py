"""Facts about this machine: kernels, CPU, threads, versions and optional libraries."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from elmore import __version__
from elmore.kernels.library import chosen_by_hand, report_kernels

LIBRARIES = (
    *("torch", "numpy", "h5py", "safetensors", "huggingface_hub", "typer", "rich", "nupunkt"),
    "packaging",
)
# The optional dependencies of pyproject.toml.
EXTRAS = {
    "parquet": "pyarrow",
    "chinese": "rjieba",
    "zstd": "zstandard",
    "tensorboard": "tensorboard",
    "plot": "matplotlib",
    "tasks": "scipy",
    "keras": "keras",
    "sklearn": "scikit-learn",
    "spacy": "spacy",
    "gensim": "gensim",
    "pandas": "pandas",
    "polars": "polars",
    "duckdb": "duckdb",
    "onnx": "onnx",
    "s3": "s3fs",
    "gcs": "gcsfs",
    "ray": "ray",
    "datasets": "datasets",
    "sentence-transformers": "sentence-transformers",
    "lightning": "lightning",
    "flair": "flair",
    "explore": "openTSNE",
    "search": "usearch",
    "serve": "fastapi",
}


def describe_system() -> dict[str, Any]:
    """Return what belongs in a bug report or next to a measured speed."""
    import torch  # noqa: PLC0415  takes seconds

    kernels = report_kernels()
    return {
        "elmore": __version__,
        "kernel": kernels.used,
        "kernel_note": kernels.reason or None,
        "ELMORE_KERNEL": chosen_by_hand(),
        "kernels_built": kernels.built,
        "kernels_usable": kernels.usable,
        "cpu": _find_cpu(),
        "cpu_features": kernels.features,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "libraries": {name: _find_version(name) for name in LIBRARIES},
        "extras": {
            extra: {"library": name, "version": _find_version(name)}
            for extra, name in EXTRAS.items()
        },
    }


def to_rows(facts: dict[str, Any]) -> dict[str, str]:
    """Return the facts as rows of a table; some are left out if they are missing."""
    may_be_missing = {"kernel_note", "ELMORE_KERNEL", "gpu"}
    rows = {
        name if name.isupper() else name.replace("_", " "): _show(value)
        for name, value in facts.items()
        if not isinstance(value, dict) and (value is not None or name not in may_be_missing)
    }
    rows |= {name: found or "not installed" for name, found in facts["libraries"].items()}
    for extra, found in facts["extras"].items():
        rows[f"elmore[{extra}]"] = (
            f"{found['library']} {found['version']}" if found["version"] else "not installed"
        )
    return rows


def _show(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return "unknown" if value is None else str(value)


def _find_version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _find_cpu() -> str:
    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text().splitlines() if cpu_info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()

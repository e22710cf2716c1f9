"""Find a model's folder: here, or on the Hugging Face hub."""

import re
from pathlib import Path
from typing import Any

from elmore.errors import ModelError

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
FILES = ["config.json", "model.safetensors", "vocabulary.txt", "characters.txt", "README.md"]


def find_folder(source: str | Path, **hub_options: Any) -> Path:
    """Return the local folder of a model, fetched first if `source` is an id of the hub."""
    folder = Path(source).expanduser()
    if folder.exists():
        return folder
    if isinstance(source, Path) or not HUB_ID.fullmatch(source) or source.startswith("."):
        raise ModelError(f"there is no model at {source}; give a folder, a file or a hub id")
    return Path(_fetch(source, **hub_options))


def _fetch(hub_id: str, **hub_options: Any) -> str:
    from huggingface_hub import snapshot_download  # noqa: PLC0415  a local model never needs it
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    try:
        return snapshot_download(hub_id, allow_patterns=FILES, **hub_options)
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"there is no folder {hub_id!r} here, and the hub gave no such model ({reason})"
        ) from error

"""Find a model's folder, on disk or on the Hugging Face hub, and upload models to the hub."""

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elmore.errors import ModelError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)
FILES = ["config.json", "model.safetensors", "vocabulary.txt", "characters.txt", "README.md"]


def find_folder(source: str | Path, **hub_options: Any) -> Path:
    """Return the local folder of a model, downloading it first if `source` is a hub id."""
    if _exists(source):
        folder = Path(source).expanduser()
        if (folder / "checkpoints").is_dir():
            raise ModelError(
                f"{folder} is the folder of a training run; give its model, {folder / 'model'}, "
                "once the run has finished"
            )
        return folder
    if Path(source).name == "model" and _exists(Path(source).parent / "checkpoints"):
        raise ModelError(
            f"the training run in {Path(source).parent} has not finished, so there is no model "
            "yet; rerun its command to resume"
        )
    is_weights = Path(source).suffix in (".hdf5", ".h5")  # a mistyped path, never an id
    if isinstance(source, Path) or is_weights or not HUB_ID.fullmatch(source):
        raise ModelError(
            f"there is no model at {str(source)!r:.200}; give a folder, a file or a hub id"
        )
    return Path(_fetch(source, **hub_options))


def _exists(source: str | Path) -> bool:
    try:
        return source != "" and Path(source).expanduser().exists()
    except (OSError, RuntimeError):  # a name that is too long, or the home of an unknown user
        return False


def _fetch(hub_id: str, **hub_options: Any) -> str:
    from huggingface_hub import snapshot_download  # noqa: PLC0415  a local model never needs it

    try:
        return snapshot_download(hub_id, allow_patterns=FILES, **hub_options)
    except TypeError:
        raise  # an option that the hub does not have is the caller's bug
    except Exception as error:  # huggingface_hub also raises errors of several other libraries
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(
            f"there is no folder {hub_id!r}, and it could not be downloaded from the hub "
            f"({reason:.200}); check the name and the network"
        ) from error


def upload(
    save: Callable[[Path], object],
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | None = None,
    branch: str | None = None,
    **upload_options: Any,
) -> str:
    """Upload the folder that `save` writes in one commit; return the commit's URL."""
    from huggingface_hub import HfApi  # noqa: PLC0415  a local model never needs it

    api = HfApi(token=token)
    with TemporaryDirectory() as name:
        folder = Path(name) / "model"
        save(folder)  # first, so that a model that cannot be saved leaves no empty repository
        try:
            repo_id = api.create_repo(repo_id=repo_id, private=private, exist_ok=True).repo_id
            commit = api.upload_folder(
                repo_id=repo_id, folder_path=folder, revision=branch, **upload_options
            )
        except TypeError:
            raise  # an option that the hub does not have is the caller's bug
        except Exception as error:  # huggingface_hub also raises errors of several other libraries
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelError(
                f"could not upload {repo_id!r:.200} to the hub ({reason:.200}); check the name, "
                "the network, and that you are logged in (hf auth login)"
            ) from error
    return str(commit)

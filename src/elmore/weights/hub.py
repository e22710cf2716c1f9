"""Download models from the Hugging Face hub, and upload them."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elmore.errors import ModelError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)


def fetch(hub_id: str, files: Sequence[str], **hub_options: Any) -> Path:
    """Return the local folder of these files of a hub model, downloading them first if needed."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415  a local model never needs it

    problem = f"there is no folder {hub_id!r}, and it could not be downloaded from the hub"
    with _explaining_errors(problem, remedy="check the name and the network"):
        return Path(snapshot_download(hub_id, allow_patterns=list(files), **hub_options))


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
        with _explaining_errors(
            f"could not upload {repo_id!r:.200} to the hub",
            remedy="check the name, the network, and that you are logged in (hf auth login)",
        ):
            repo_id = api.create_repo(repo_id=repo_id, private=private, exist_ok=True).repo_id
            commit = api.upload_folder(
                repo_id=repo_id, folder_path=folder, revision=branch, **upload_options
            )
    return str(commit)


@contextmanager
def _explaining_errors(problem: str, *, remedy: str) -> Iterator[None]:
    """Turn an error of the hub's library into one sentence."""
    try:
        yield
    except TypeError:
        raise  # an option that the hub does not have is the caller's bug
    except Exception as error:  # huggingface_hub also raises errors of several other libraries
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{problem} ({reason:.200}); {remedy}") from error

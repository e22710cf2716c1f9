"""Checkpoints: everything a job needs to resume as if it had never stopped.

A checkpoint is `step-N.safetensors`, and then `step-N.json` with the progress and a hash of the
tensors. Without its JSON, a checkpoint is incomplete and ignored. If the hash does not match, the
checkpoint is damaged and an older one is used.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmore.errors import DataError
from elmore.files.atomic import replace_file
from elmore.files.hashing import hash_file

FORMAT = 1
_NAME = re.compile(r"step-(\d{12})\.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """The content of a checkpoint."""

    step: int
    tensors: dict[str, Tensor]
    progress: dict[str, Any]


class Checkpoints:
    """The checkpoints of a run; only the newest `keep` are kept."""

    def __init__(self, folder: Path, *, keep: int) -> None:
        self.folder = folder
        self.keep = keep

    def write(self, step: int, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """Write a checkpoint, then delete old ones."""
        path = self._path(step)
        with replace_file(path.with_suffix(".safetensors")) as temporary:
            save_tensors(temporary, tensors)
            digest = hash_file(temporary)
        content = {"format": FORMAT, "step": step, "sha256": digest, "progress": dict(progress)}
        with replace_file(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        self._remove_old(newest=step)

    def steps(self) -> list[int]:
        """Return the steps of all checkpoints, in ascending order."""
        if not self.folder.is_dir():
            return []
        names = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def read_newest(self, *, on_message: Callable[[str], None]) -> Checkpoint | None:
        """Read the newest intact checkpoint; None if there are no checkpoints."""
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self._read(step)
            except DataError as error:
                on_message(f"{error}; trying an older checkpoint")
        if steps:
            raise DataError(
                f"all checkpoints in {self.folder} are damaged; restore one from a backup, or "
                "start over with --restart"
            )
        return None

    def remove_leftovers(self, *, newest: int) -> None:
        """Delete temporary files and old checkpoints that a killed process left behind.

        `newest` is the step of the newest intact checkpoint.
        """
        self._remove_old(newest=newest)
        whole = {self._path(step).stem for step in self.steps()}
        for path in self.folder.glob("step-*.safetensors"):
            if path.stem not in whole:
                path.unlink(missing_ok=True)
        # Our temporary files, and those of safetensors.
        for pattern in (".step-*.tmp", ".tmp??????"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)

    def _remove_old(self, *, newest: int) -> None:
        # Delete the JSON first, since a checkpoint without it is ignored.
        for old in [step for step in self.steps() if step <= newest][: -self.keep]:
            self._path(old).unlink(missing_ok=True)
            self._path(old).with_suffix(".safetensors").unlink(missing_ok=True)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:012d}.json"

    def _read(self, step: int) -> Checkpoint:
        path = self._path(step)
        weights = path.with_suffix(".safetensors")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise DataError(f"{path} has format {content['format']!r}; update elmore")
            if hash_file(weights) != content["sha256"]:
                raise DataError(f"{weights} is damaged (its hash does not match)")
            tensors = load_file(weights)
            return Checkpoint(step=step, tensors=tensors, progress=content["progress"])
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise DataError(f"cannot read the checkpoint {path} ({error!s:.200})") from error


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors from any device."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # Copy tensors that share memory, such as expanded states: safetensors rejects them.
    owners: set[int] = set()
    for name, tensor in plain.items():
        if tensor.untyped_storage().data_ptr() in owners:
            plain[name] = tensor.clone()
        owners.add(tensor.untyped_storage().data_ptr())
    try:
        save_file(plain, path)
    except SafetensorError as error:  # a full disk
        raise OSError(str(error)) from error


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read what `save_tensors` wrote."""
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(
            f"cannot read {path} ({error!s:.200}); start over with --restart"
        ) from error


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors with a prefix added to their names."""
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names start with a prefix, without the prefix."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def load_into(module: torch.nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy weights into a module, in place."""
    module.load_state_dict(dict(tensors), strict=True)

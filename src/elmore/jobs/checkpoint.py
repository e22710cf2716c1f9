"""Everything a job needs to resume as if it had never stopped, on disk, whole or not at all.

A checkpoint is `step-N.safetensors` and then `step-N.json`: its progress, and a hash of the
tensors. Without its JSON a checkpoint does not count; with a wrong hash it is damaged, and an older
one is taken.
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
    """What was written after a step."""

    step: int
    tensors: dict[str, Tensor]
    progress: dict[str, Any]


class Checkpoints:
    """The checkpoints of a run; the newest `keep` of them stay."""

    def __init__(self, folder: Path, *, keep: int) -> None:
        self.folder = folder
        self.keep = keep

    def write(self, step: int, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
        """Write a checkpoint; older ones go once it is safe on the disk."""
        path = self._path(step)
        with replace_file(path.with_suffix(".safetensors")) as temporary:
            save_tensors(temporary, tensors)
            digest = hash_file(temporary)
        content = {"format": FORMAT, "step": step, "sha256": digest, "progress": dict(progress)}
        with replace_file(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        self._remove_old(newest=step)

    def steps(self) -> list[int]:
        """Return the steps there are checkpoints of, ascending."""
        if not self.folder.is_dir():
            return []
        names = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def read_newest(self, *, on_message: Callable[[str], None]) -> Checkpoint | None:
        """Read the newest checkpoint that is whole; None if there never was one."""
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self._read(step)
            except DataError as error:
                on_message(f"{error}; trying an older checkpoint")
        if steps:
            raise DataError(
                f"no checkpoint in {self.folder} is whole; restore one from a copy, or start "
                "over with --restart"
            )
        return None

    def remove_leftovers(self, *, newest: int) -> None:
        """Remove what processes that were killed had begun to write or were about to remove.

        `newest` is the newest step of which there is a whole checkpoint.
        """
        self._remove_old(newest=newest)
        whole = {self._path(step).stem for step in self.steps()}
        for path in self.folder.glob("step-*.safetensors"):
            if path.stem not in whole:
                path.unlink(missing_ok=True)
        # Ours, and those that safetensors writes to before it renames them.
        for pattern in (".step-*.tmp", ".tmp??????"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)

    def _remove_old(self, *, newest: int) -> None:
        # Without its JSON a checkpoint does not count, so that goes first.
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
                raise DataError(
                    f"{weights} is damaged (its hash is not the one it was written with)"
                )
            tensors = load_file(weights)
            return Checkpoint(step=step, tensors=tensors, progress=content["progress"])
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise DataError(f"checkpoint {path} cannot be read ({error!s:.200})") from error


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors of any device."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # Tensors that share memory, as an expanded state does, are written each on its own.
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
            f"{path} cannot be read ({error!s:.200}); start over with --restart"
        ) from error


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors under longer names."""
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin so, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def load_into(module: torch.nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy weights into a module, in place."""
    module.load_state_dict(dict(tensors), strict=True)

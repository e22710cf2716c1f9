"""Find a checkpoint: all its files have one prefix, such as model.ckpt-935588."""

import re
from pathlib import Path

from elmore.files.untrusted import read_bounded

MAX_STATE_BYTES = 1 << 20
ONE_OF_ITS_FILES = re.compile(r"(?P<prefix>.+)\.(?:index|meta|data-[0-9]{5}-of-[0-9]{5})")
NEWEST = re.compile(r'^model_checkpoint_path:\s*"([^"\n]*)"', flags=re.MULTILINE)


def find_prefix(path: Path) -> Path | None:
    """Return the prefix of a checkpoint, given it, one of its files or its folder."""
    if path.is_dir():
        return _find_in_folder(path)
    if path.with_name(f"{path.name}.index").is_file():
        return path
    match = ONE_OF_ITS_FILES.fullmatch(path.name)
    return path.with_name(match["prefix"]) if match else None


def _find_in_folder(folder: Path) -> Path | None:
    """Return the newest checkpoint of a folder, or the only one if none is named as newest."""
    state = folder / "checkpoint"
    if state.is_file():
        match = NEWEST.search(
            read_bounded(state, max_bytes=MAX_STATE_BYTES).decode(errors="replace")
        )
        # The path may be that of another machine.
        name = match[1].replace("\\\\", "/").rsplit("/", 1)[-1] if match else ""
        if name and (folder / f"{name}.index").is_file():
            return folder / name
    found = sorted(folder.glob("*.index"))
    return found[0].with_suffix("") if len(found) == 1 else None

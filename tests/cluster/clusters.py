"""Texts for clusters, and network namespaces in which nothing can leave the machine."""

import shlex
import shutil
import sys
from pathlib import Path

import pytest

import elmore
from tests.tiny import TRAINED_MODEL

LINE = "The old man sat by the bank of the river {}. It rained all day. He left.\n"


def write_texts(folder: Path, *, num_lines: int = 120) -> Path:
    """Write four files."""
    folder.mkdir()
    for number in range(4):
        lines = [LINE.format(number * 1000 + line) for line in range(num_lines)]
        (folder / f"{number}.txt").write_text("\n".join(lines))
    return folder


def write_wanted(texts: Path, out: Path) -> dict[str, bytes]:
    """Embed the texts in this process; return what every engine must write."""
    job = elmore.plan_files(TRAINED_MODEL, texts, out, shard_bytes=4000)
    for shard in job.find_pending():
        job.run(shard)
    job.finish()
    return contents(out)


def contents(folder: Path) -> dict[str, bytes]:
    """Return what a job has written."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


needs_namespaces = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("unshare") is None or shutil.which("ip") is None,
    reason="network namespaces are not available here (they need Linux, unshare and ip)",
)


def in_namespace(*command: object) -> list[str]:
    """Return a command that runs another one with no network but loopback."""
    run = " ".join(shlex.quote(str(part)) for part in command)
    return ["unshare", "-rn", "sh", "-c", f"ip link set lo up && exec {run}"]

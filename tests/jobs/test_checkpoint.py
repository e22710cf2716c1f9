"""What killed processes leave in a folder of checkpoints is removed, and nothing else."""

import torch

from elmore.jobs.checkpoint import Checkpoints


def test_leftovers_of_killed_processes_are_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=2)
    for step in (1, 2, 3):
        checkpoints.write(step, {"weight": torch.ones(2)}, {"step": step})
    kept = sorted(path.name for path in checkpoints.folder.iterdir())
    for name in (
        ".tmpqlsZ79",
        ".step-000000000004.safetensors.tmp",
        "step-000000000004.safetensors",
    ):
        (checkpoints.folder / name).write_bytes(b"half")
    (checkpoints.folder / "notes.txt").write_text("mine")
    checkpoints.remove_leftovers(newest=3)
    left = sorted(path.name for path in checkpoints.folder.iterdir())
    assert left == sorted([*kept, "notes.txt"])

"""Runs that take a second: settings, a text, and somebody who watches."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from elmore.jobs.checkpoint import Checkpoints
from elmore.lm.finish import RunReport
from elmore.lm.metrics import HeldoutResult, RunProgress
from elmore.lm.pretrain import pretrain_model
from elmore.lm.run import StoppedError
from elmore.lm.settings import PretrainSettings, read_settings
from elmore.settings import apply_change
from tests.corpus.memory_corpus import MemoryCorpus, make_corpus

TEXT = "\n\n".join(
    "\n".join(
        f"the {animal} {verb} the {other} ." if number % 3 else f"a {animal} {verb}"
        for number, verb in enumerate(["saw", "heard", "chased", "met", "left"])
    )
    for animal, other in (("cat", "dog"), ("dog", "bird"), ("bird", "fish"), ("fish", "cat"))
)
HELDOUT = "the cat saw the fish .\na bird left\n\nthe dog met the cat .\n"


def make_settings(*changes: str) -> PretrainSettings:
    """A tiny run of 12 steps, changed as on the command line."""
    values: dict[str, Any] = {
        "model": {
            "lstm": {"num_layers": 2, "cell_dim": 12, "output_dim": 5},
            "characters": {
                "embedding_dim": 3,
                "max_chars": 9,
                "filters": [[1, 2], [2, 3], [3, 4]],
                "num_highway_layers": 1,
            },
        },
        "softmax": {"kind": "sampled", "num_negatives": 6},
        "optimizer": {"name": "adagrad"},
        "training": {"rows": 4, "window": 5, "num_epochs": 100, "max_steps": 12, "dropout": 0.2},
        "run": {"log_steps": 2, "heldout_steps": 4, "checkpoint_steps": 3, "rest_tokens": 40},
    }
    for change in changes:
        apply_change(values, change)
    return read_settings(values)


def corpus() -> MemoryCorpus:
    return make_corpus(TEXT, HELDOUT)


class Watcher:
    """Records what it receives; requests a stop after a given step."""

    def __init__(self, *, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.steps: list[RunProgress] = []
        self.heldout: list[HeldoutResult] = []
        self.checkpoints: list[int] = []
        self.messages: list[str] = []
        self.stages: list[str] = []

    def on_step(self, progress: RunProgress) -> None:
        self.steps.append(progress)
        if progress.step == self.stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    def on_heldout(self, result: HeldoutResult) -> None:
        self.heldout.append(result)

    def on_checkpoint(self, step: int) -> None:
        self.checkpoints.append(step)

    def on_message(self, text: str) -> None:
        self.messages.append(text)

    def on_stage(self, name: str, share: float | None = None) -> None:
        self.stages.append(name)


def run(folder: Path, *changes: str, **options: Any) -> RunReport:
    """Train a tiny model to the end."""
    options.setdefault("corpus", corpus())
    report = pretrain_model(make_settings(*changes), folder=folder, **options)
    assert report is not None
    return report


def run_until(folder: Path, step: int, *changes: str, **options: Any) -> Watcher:
    """Start or resume, and send a stop signal after a step; the run ends after the next one."""
    watcher = Watcher(stop_after=step)
    with pytest.raises(StoppedError) as stop:
        run(folder, *changes, observer=watcher, **options)
    assert stop.value.signal_number == signal.SIGTERM
    return watcher


def last_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """All that the newest checkpoint of a run keeps."""
    newest = Checkpoints(folder / "checkpoints", keep=9).read_newest(on_message=print)
    assert newest is not None
    return newest.tensors


def assert_same_bits(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name

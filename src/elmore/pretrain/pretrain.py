"""Pretraining from beginning to end: a corpus and settings in, a model folder out."""

from collections.abc import Callable
from pathlib import Path

import torch

from elmore.errors import ConfigError
from elmore.pretrain.corpus import Corpus, open_corpus
from elmore.pretrain.distributed import Group, local_rank
from elmore.pretrain.finish import RunReport, finish_run
from elmore.pretrain.metrics import HeldoutResult, RunObserver, RunProgress
from elmore.pretrain.network import Softmax
from elmore.pretrain.run import Run, lock_run
from elmore.pretrain.settings import PretrainSettings
from elmore.weights.elmo_model import ElmoModel


class NoObserver:
    """Watches nothing."""

    def on_step(self, progress: RunProgress) -> None:
        """Do nothing."""

    def on_heldout(self, result: HeldoutResult) -> None:
        """Do nothing."""

    def on_checkpoint(self, step: int) -> None:
        """Do nothing."""

    def on_message(self, text: str) -> None:
        """Do nothing."""

    def on_stage(self, name: str, share: float | None = None) -> None:
        """Do nothing."""


def pretrain_model(
    settings: PretrainSettings,
    corpus: Path | Corpus,
    folder: Path,
    *,
    observer: RunObserver | None = None,
    restart: bool = False,
    device: str | torch.device = "cpu",
    make_parts: Callable[[Corpus], tuple[ElmoModel, Softmax]] | None = None,
) -> RunReport | None:
    """Train in `folder`, going on with what is there; None in all but the first process.

    `make_parts` gives weights to begin with; without it they are drawn from the seed.
    """
    opened = open_corpus(corpus) if isinstance(corpus, Path) else corpus
    group = Group(device=read_device(device))
    release = lock_run(folder) if group.is_first else None
    try:
        run = Run(
            settings,
            opened,
            folder,
            group=group,
            observer=observer if observer is not None and group.is_first else NoObserver(),
            make_parts=None if make_parts is None else lambda: make_parts(opened),
        )
        run.begin(restart=restart)
        reason = run.train()
        report = finish_run(run, reason=reason)
        run.trainer.close()
        del run
        group.close()
    finally:
        if release is not None:
            release()
    return report if group.is_first else None


def read_device(name: str | torch.device) -> torch.device:
    """Return where to compute; under torchrun each process takes a GPU of its own."""
    try:
        device = torch.device(name)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", local_rank())
            torch.cuda.set_device(device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(
            f"cannot compute on device {str(name)!r} ({str(error).splitlines()[0]:.120}); "
            "give one that this machine has, such as cpu"
        ) from None
    return device

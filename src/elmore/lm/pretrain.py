"""Pretraining from start to finish: a corpus and settings in, a model folder out."""

import os
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch

from elmore.corpus.corpus import Corpus, open_corpus
from elmore.corpus.sources import weigh_inputs
from elmore.jobs.checkpoint import Checkpoints
from elmore.jobs.device import read_device
from elmore.jobs.stopping import StoppedError, stopping_at_once
from elmore.lm.distributed import (
    Group,
    count_restarts,
    exit_silently,
    is_process_lost,
)
from elmore.lm.enough_text import check_enough_text, find_overlap
from elmore.lm.finish import RunReport, finish_run
from elmore.lm.metrics import RunObserver
from elmore.lm.network import Softmax, make_config
from elmore.lm.run import CHECKPOINTS, RUN, LostProcessError, Run
from elmore.lm.settings import PretrainSettings
from elmore.lm.start_from import FirstWeights
from elmore.weights.elmo_model import ElmoModel

# Show the corpus check if it takes longer than this.
SECONDS_BEFORE_STAGE = 2.0


def pretrain_model(
    settings: PretrainSettings,
    corpus: str | os.PathLike[str] | Corpus,
    folder: str | os.PathLike[str],
    *,
    observer: RunObserver | None = None,
    restart: bool = False,
    device: str | torch.device = "cpu",
    start_from: str | Path | None = None,
    make_parts: Callable[[Corpus], tuple[ElmoModel, Softmax]] | None = None,
) -> RunReport | None:
    """Train in `folder`, resuming a run found there; return None in all but the first process.

    The initial weights are those of the model `start_from`, or what `make_parts` returns; without
    either they are random, drawn from the seed.
    """
    folder = Path(folder)
    group = Group(device=read_device(device))
    observer = observer if observer is not None and group.is_first else RunObserver()
    release: Callable[[], None] | None = None
    try:
        opened = group.run_on_all(
            lambda: weigh_inputs(
                _open_corpus(corpus),
                settings.training.weights,
            )
        )
        first = None
        if start_from is not None:
            first = group.run_on_all(lambda: FirstWeights(start_from, folder=folder))
            settings = group.run_on_all(partial(first.complete, settings))
            make_parts = partial(first.make_parts, settings)
        group.check_same({"configuration": _shared(settings), "corpus": opened.fingerprint})
        if make_parts is None:
            # Find mistakes in the settings before anything is written.
            group.run_on_all(lambda: make_config(settings, opened))
        group.run_on_all(lambda: check_enough_text(opened, window=settings.training.window))
        group.run_on_all(lambda: _check_shards(opened, group, observer))
        release = group.run_on_first(lambda: RUN.lock(folder))
        run = group.run_on_all(
            lambda: Run(
                settings,
                opened,
                folder,
                group=group,
                observer=observer,
                make_parts=None if make_parts is None else lambda: make_parts(opened),
                start=None if first is None else first.fingerprint,
            )
        )
        if first is not None:
            observer.on_message(first.explain(settings, opened))
        if (overlap := find_overlap(opened, settings.training)) is not None:
            observer.on_message(f"note: {overlap}")
        # Processes restarted by torchrun resume, even with --restart.
        is_first_start = not any(group.add([float(count_restarts())]))
        run.begin(restart=restart and is_first_start)
        reason = run.train()
        is_alone = group.size == 1
        with stopping_at_once(step=run.progress.step) if is_alone else nullcontext():
            report = finish_run(run, reason=reason)
        group.close()
    except StoppedError as stop:
        with suppress(RuntimeError):  # all processes stop after the same step, unless one is lost
            group.close()
        if not group.is_first:
            exit_silently(128 + stop.signal_number)
        raise
    except RuntimeError as error:
        if group.size == 1 or not is_process_lost(error):
            raise
        steps = Checkpoints(folder / CHECKPOINTS, keep=1).steps()
        raise LostProcessError(saved_step=max(steps, default=None)) from error
    finally:
        if release is not None:
            release()
    return report if group.is_first else None


def _check_shards(corpus: Corpus, group: Group, observer: RunObserver) -> None:
    """Find damage now rather than after hours of training; a machine's processes share the work."""
    started = time.monotonic()

    def show(num_done: int, num_shards: int) -> None:
        if time.monotonic() - started > SECONDS_BEFORE_STAGE:
            observer.on_stage("checking the corpus", num_done / num_shards)

    corpus.check_shards(rank=group.local_rank, num_ranks=group.num_local, on_shard=show)


def _open_corpus(corpus: str | os.PathLike[str] | Corpus) -> Corpus:
    is_open = hasattr(corpus, "fingerprint")  # a corpus in memory is no Corpus
    return cast("Corpus", corpus) if is_open else open_corpus(cast("str", corpus))


def _shared(settings: PretrainSettings) -> dict[str, Any]:
    """Return the settings that must be the same in all processes."""
    values = settings.to_json()
    del values["run"]["threads"]  # machines may differ
    return values

"""How many CPU threads a task network trains with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from elmore.tasks.fit.settings import ElmoPlace, ElmoTraining, FitSettings


def choose_threads(settings: FitSettings) -> int | None:
    """Return the number of threads; None leaves torch's choice, which is all cores.

    One, unless settings say otherwise: the networks are small, and OpenMP's threads wait for each
    other by spinning, so that beside another busy process several are slower than one
    (benchmarks/task_threads.py, docs/decisions.md). A biLM that is trained too is large, and its
    kernels use threads that do not spin.
    """
    if settings.training.threads is not None:
        return settings.training.threads
    elmo = settings.elmo
    trains_bilm = elmo.where is not ElmoPlace.NONE and elmo.training is ElmoTraining.TASK
    return None if trains_bilm else 1


@contextmanager
def using_threads(number: int | None) -> Iterator[None]:
    """Let torch compute with so many threads inside; afterwards with as many as before."""
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        if number is not None:
            torch.set_num_threads(before)

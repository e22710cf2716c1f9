"""The number of CPU threads that a task network is trained with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from elmore.tasks.fit.settings import ElmoPlace, ElmoTraining, FitSettings


def choose_threads(settings: FitSettings) -> int | None:
    """Return the number of threads; None for torch's default, which is all cores.

    The default is one, because task networks are small and OpenMP threads busy-wait: next to
    another busy process, several threads are slower than one (benchmarks/task_threads.py,
    docs/decisions.md). If the biLM is trained too, all cores are used: it is large, and its kernels
    use threads that do not busy-wait.
    """
    if settings.training.threads is not None:
        return settings.training.threads
    elmo = settings.elmo
    trains_bilm = elmo.where is not ElmoPlace.NONE and elmo.training is ElmoTraining.TASK
    return None if trains_bilm else 1


@contextmanager
def using_threads(number: int | None) -> Iterator[None]:
    """Set torch's number of threads inside the block, and restore it afterwards."""
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        if number is not None:
            torch.set_num_threads(before)

"""Time several methods in turns, so that noise of the machine affects all of them alike."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, kw_only=True, slots=True)
class Contestant:
    """One of the methods."""

    name: str
    run: Callable[[], object]
    prepare: Callable[[], object] = lambda: None
    """Called before each run; not timed."""
    warm_up: Callable[[], object] | None = None
    """Called once before all runs; by default, an untimed run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """The time of each run of a contestant, in seconds."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """The reported time."""
        return median(self.seconds)


def take_turns(
    contestants: Sequence[Contestant],
    *,
    repeats: int,
    after_round: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Run each contestant `repeats` times in turns, starting with a different one each time.

    On a busy machine, let `clock` be `time.process_time`.
    """
    for contestant in contestants:
        contestant.prepare()
        (contestant.warm_up or contestant.run)()
    seconds: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for turn in range(repeats):
        first = turn % len(contestants)
        for contestant in [*contestants[first:], *contestants[:first]]:
            contestant.prepare()
            started = clock()
            result = contestant.run()
            seconds[contestant.name].append(clock() - started)
            del result  # so that freeing it does not count for the next contestant
        after_round()
    return {name: Timing(seconds=times) for name, times in seconds.items()}

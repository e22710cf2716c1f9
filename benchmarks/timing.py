"""Time several ways of doing one thing by turns, so that the machine's noise hits all alike."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, kw_only=True, slots=True)
class Contestant:
    """One way of doing it."""

    name: str
    run: Callable[[], object]
    prepare: Callable[[], object] = lambda: None
    """Comes before each run, and is not timed."""
    warm_up: Callable[[], object] | None = None
    """Comes once, before all; without it, a run does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """The seconds of each run of a contestant."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """What is reported."""
        return median(self.seconds)


def take_turns(
    contestants: Sequence[Contestant],
    *,
    repeats: int,
    after_round: Callable[[], object] = lambda: None,
) -> dict[str, Timing]:
    """Run each contestant `repeats` times, one after the other, each time another one first."""
    for contestant in contestants:
        contestant.prepare()
        (contestant.warm_up or contestant.run)()
    seconds: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for turn in range(repeats):
        first = turn % len(contestants)
        for contestant in [*contestants[first:], *contestants[:first]]:
            contestant.prepare()
            started = time.perf_counter()
            result = contestant.run()
            seconds[contestant.name].append(time.perf_counter() - started)
            del result  # freeing it is no part of the next contestant's time
        after_round()
    return {name: Timing(seconds=times) for name, times in seconds.items()}

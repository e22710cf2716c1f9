"""What a comparison keeps of its runs; everything that the report says is computed from this."""

from dataclasses import dataclass, field
from typing import Any

from elmore.errors import DataError
from elmore.tasks.fit.progress import EpochResult
from elmore.tasks.metrics.ratios import is_above_constant

WITHOUT = "without"
"""The variant that has no ELMo; the others are measured against it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """One network, trained once."""

    variant: str
    share: float
    """Of the training examples, above 0 and up to 1."""
    seed: int
    num_train: int
    scores: dict[str, dict[str, float]]
    """Percent, by part ("dev", "test") and name."""
    curve: list[EpochResult]
    layer_shares: dict[str, list[float]]
    """Of the layers in a mix, by place ("below", "above"); empty without ELMo."""
    scale: dict[str, float]
    best_epoch: int
    seconds: float
    num_parameters: int
    constant_scores: dict[str, float] = field(default_factory=dict)
    """By part, the best main score of one prediction for everything; empty if not known."""

    def __post_init__(self) -> None:
        """Refuse a share that is none."""
        if not (0 < self.share <= 1 and self.num_train > 0):
            raise DataError(
                f"a run of {self.variant!r} has share {self.share} and {self.num_train} examples; "
                "wanted a share above 0 and up to 1, and an example at least"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """All runs of a task, and what they were made with."""

    task: str
    main_score: str
    elmo: str
    """The model's name."""
    elmo_fingerprint: str
    words: str
    """The file of the word vectors, or "learned"."""
    num_examples: dict[str, int]
    """By part."""
    perplexity: dict[str, float] | None
    """ "before" and "after", where the biLM was first fine-tuned on the task's text."""
    settings: dict[str, Any]
    runs: list[RunResult]

    def __post_init__(self) -> None:
        """Refuse runs that cannot be compared."""
        if not self.runs:
            raise DataError(f"the comparison on {self.task!r} has no runs; wait for the first")
        places = set()
        for run in self.runs:
            place = (run.variant, run.share, run.seed)
            name = f"variant {run.variant!r}, share {run.share:g}, seed {run.seed}"
            if place in places:
                raise DataError(f"there are two runs of {name}; keep one of them")
            places.add(place)
            for part in {"dev": None, **run.scores}:
                if self.main_score not in run.scores.get(part, {}):
                    raise DataError(f"the run of {name} has no {self.main_score!r} on {part}")

    @property
    def part(self) -> str:
        """Where runs are compared: on test if all were scored there, else on dev."""
        return "test" if all("test" in run.scores for run in self.runs) else "dev"

    @property
    def variants(self) -> list[str]:
        """Each variant once: the one without ELMo first, then as they come."""
        found = dict.fromkeys(run.variant for run in self.runs)
        return sorted(found, key=lambda variant: variant != WITHOUT)

    @property
    def shares(self) -> list[float]:
        """Each share once, from small to large."""
        return sorted({run.share for run in self.runs})

    def find_runs(self, variant: str, share: float) -> list[RunResult]:
        """Return what was trained with different seeds, by seed."""
        runs = [run for run in self.runs if (run.variant, run.share) == (variant, share)]
        return sorted(runs, key=lambda run: run.seed)

    def has_learned(self, run: RunResult) -> bool | None:
        """Tell whether a run scores better than one prediction for everything; None if unknown."""
        return is_above_constant(self.score_of(run), run.constant_scores.get(self.part))

    def score_of(self, run: RunResult) -> float:
        """Return what a run is compared by."""
        return run.scores[self.part][self.main_score]

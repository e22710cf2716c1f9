"""The results of a comparison; everything in the report is computed from them."""

from dataclasses import dataclass, field
from typing import Any

from elmore.errors import DataError
from elmore.tasks.fit.progress import EpochResult
from elmore.tasks.metrics.ratios import is_above_constant

WITHOUT = "without"
"""The variant without ELMo, the baseline of the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """One training run."""

    variant: str
    share: float
    """Fraction of the training examples, above 0 and at most 1."""
    seed: int
    num_train: int
    scores: dict[str, dict[str, float]]
    """In percent, by part ("dev", "test") and name."""
    curve: list[EpochResult]
    layer_shares: dict[str, list[float]]
    """Softmax weights of the layers, by position ("below", "above"); empty without ELMo."""
    scale: dict[str, float]
    best_epoch: int
    seconds: float
    num_parameters: int
    constant_scores: dict[str, float] = field(default_factory=dict)
    """By part, the best main score of a constant prediction; empty if unknown."""

    def __post_init__(self) -> None:
        """Validate."""
        if not (0 < self.share <= 1 and self.num_train > 0):
            raise DataError(
                f"a run of {self.variant!r} has share {self.share} and {self.num_train} examples; "
                "expected a share above 0 and at most 1, and at least one example"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """All runs of a comparison, and their settings."""

    task: str
    main_score: str
    elmo: str
    """The name of the model."""
    elmo_fingerprint: str
    words: str
    """The file of the word vectors, or "learned"."""
    num_examples: dict[str, int]
    """By part."""
    perplexity: dict[str, float] | None
    """Perplexity "before" and "after" fine-tuning the biLM on the task's text, if it was."""
    settings: dict[str, Any]
    runs: list[RunResult]

    def __post_init__(self) -> None:
        """Check that the runs can be compared."""
        if not self.runs:
            raise DataError(
                f"the comparison on {self.task!r} has no runs; wait for the first to finish"
            )
        seen = set()
        for run in self.runs:
            key = (run.variant, run.share, run.seed)
            name = f"variant {run.variant!r}, share {run.share:g}, seed {run.seed}"
            if key in seen:
                raise DataError(f"there are two runs of {name}; keep one of them")
            seen.add(key)
            for part in {"dev": None, **run.scores}:
                if self.main_score not in run.scores.get(part, {}):
                    raise DataError(f"the run of {name} has no {self.main_score!r} on {part}")

    @property
    def part(self) -> str:
        """The part that runs are compared on: test if all have test scores, otherwise dev."""
        return "test" if all("test" in run.scores for run in self.runs) else "dev"

    @property
    def variants(self) -> list[str]:
        """The distinct variants: the one without ELMo first, the others in order of appearance."""
        found = dict.fromkeys(run.variant for run in self.runs)
        return sorted(found, key=lambda variant: variant != WITHOUT)

    @property
    def shares(self) -> list[float]:
        """The distinct shares in ascending order."""
        return sorted({run.share for run in self.runs})

    def find_runs(self, variant: str, share: float) -> list[RunResult]:
        """Return the runs of a variant and share, ordered by seed."""
        runs = [run for run in self.runs if (run.variant, run.share) == (variant, share)]
        return sorted(runs, key=lambda run: run.seed)

    def has_learned(self, run: RunResult) -> bool | None:
        """Return whether a run beats a constant prediction; None if unknown."""
        return is_above_constant(self.score_of(run), run.constant_scores.get(self.part))

    def score_of(self, run: RunResult) -> float:
        """Return the score that runs are compared by."""
        return run.scores[self.part][self.main_score]

"""Describe what a comparison found, in sentences."""

from elmore.comparison.results import WITHOUT, Comparison
from elmore.comparison.sample_efficiency import Need, find_baseline
from elmore.comparison.summary import Cell, Gain, Verdict, find_best, find_full_share
from elmore.comparison.wording import clean, describe, format_mean, format_number, format_percent
from elmore.wording import count

EXPLANATION = (
    "± is the sample standard deviation over seeds. The 95 % confidence interval of the gain is "
    "based on Student’s t over paired differences between runs with the same seed. It is wide for "
    "few seeds, and it covers variation over seeds only: other test data would add uncertainty of "
    "their own. One in twenty intervals misses the true gain by chance."
)

JUDGMENTS = {
    Verdict.GAIN: "significant gain",
    Verdict.LOSS: "significant loss",
    Verdict.UNCLEAR: "not significant",
    Verdict.UNKNOWN: "unknown (one seed)",
    Verdict.NEITHER: "neither learned",
}


def describe_finding(comparison: Comparison, cells: list[Cell]) -> str:
    """Return a sentence about the variant that is best on dev at the full share."""
    best = find_best(cells)
    full = find_full_share(cells)
    without = [cell for cell in cells if (cell.variant, cell.share) == (WITHOUT, full)]
    score = f"{clean(comparison.main_score)} on {comparison.part}"
    if best is None:
        return (
            f"Without ELMo, {score} is {_mean(without[0])}, {_over_seeds(without[0])}. "
            "There is no run with ELMo on as many examples yet."
        )
    with_elmo = describe(best.variant).after_with
    if best.gain is not None and best.gain.verdict is Verdict.NEITHER:
        return (
            f"Neither network learned: with {with_elmo}, {score} is {_mean(best)}; without ELMo "
            f"it is {_mean(without[0])}, {_over_seeds(best, without[0])}; a constant prediction "
            f"scores {format_number(best.constant_score or 0.0)}. Train longer, on more examples "
            "or with other settings before comparing."
        )
    if best.gain is None:
        return (
            f"With {with_elmo}, {score} is {_mean(best)}, {_over_seeds(best)}. "
            "There is no run without ELMo on as many examples to compare with."
        )
    num_uses = sum(
        cell.share == full and cell.variant != WITHOUT and cell.num_seeds == best.num_seeds
        for cell in cells
    )
    choice = f" (the best on dev of {num_uses} variants)" if num_uses > 1 else ""
    digits = 1 if abs(best.gain.points) >= 0.95 else 2
    start = "With" if best.gain.points > 0 else "No gain: with"
    return (
        f"{start} {with_elmo}{choice}, {score} is {_mean(best, digits)}, "
        f"{_compare(best.gain.points, digits)} without ELMo ({_mean(without[0], digits)}), "
        f"{_over_seeds(best, without[0])}{_judge(best.gain)}."
    )


def describe_no_need(comparison: Comparison, cells: list[Cell]) -> str | None:
    """Return why the number of examples saved is unknown, if several shares were trained."""
    baseline = find_baseline(cells)
    if len(comparison.shares) < 2 or baseline is None or baseline.has_learned:
        return None
    return (
        "The network without ELMo does not beat a constant prediction, so the number of examples "
        "that ELMo saves is unknown."
    )


def describe_need(need: Need) -> str:
    """Return a sentence about how many examples ELMo saves."""
    baseline = (
        f"the {format_number(need.target)} that the network without ELMo reaches "
        f"with {count(need.baseline_num_train, 'example')}"
    )
    name = describe(need.variant).after_with
    if need.num_train is None:
        return f"With {name}, {baseline} was not reached."
    words = "at most" if need.is_bound else "about"
    part = format_percent(need.num_train / need.baseline_num_train)
    examples = count(need.num_train, "example")
    return f"With {name}, {words} {examples} ({part}) are enough for {baseline}."


def _compare(points: float, digits: int) -> str:
    if points == 0:
        return "the same as"
    size = format_number(abs(points), digits=digits)
    return f"{size} points {'higher' if points > 0 else 'lower'} than"


def _judge(gain: Gain) -> str:
    """Return what the difference means; nothing if it is a clear loss."""
    notes = []
    if gain.points > 0 and gain.error_share is not None and gain.verdict is not Verdict.UNCLEAR:
        notes.append(f"{format_percent(gain.error_share)} fewer errors")
    if gain.verdict is Verdict.UNKNOWN:
        notes.append("this may be chance")
    elif gain.verdict is Verdict.UNCLEAR and gain.points != 0:
        notes.append("this is within the variation between seeds")
    return "".join(f"; {note}" for note in notes)


def _mean(cell: Cell, digits: int = 2) -> str:
    return format_mean(cell.mean, cell.deviation, digits=digits)


def _over_seeds(*cells: Cell) -> str:
    counts = sorted({cell.num_seeds for cell in cells})
    if len(counts) == 1:
        return f"over {count(counts[0], 'seed')}" if counts[0] > 1 else "from one seed"
    return f"over {counts[0]} and {counts[1]} seeds"

"""What a comparison found, in sentences computed from its numbers."""

from elmore.comparison.results import WITHOUT, Comparison
from elmore.comparison.sample_efficiency import Need, find_baseline
from elmore.comparison.summary import Cell, Gain, Verdict, find_best, find_full_share
from elmore.comparison.variants import describe
from elmore.comparison.wording import clean, format_mean, format_number, format_percent
from elmore.wording import count

EXPLANATION = (
    "± is the standard deviation over seeds (n − 1). The interval is where the gain lies with 95 % "
    "confidence, by Student’s t over the differences of runs with the same seed; it is wide for "
    "few seeds, and it is about seeds alone: other test data would add their own uncertainty, and "
    "of twenty intervals one misses by chance."
)

JUDGEMENTS = {
    Verdict.GAIN: "a gain beyond the seeds’ deviation",
    Verdict.LOSS: "a loss beyond the seeds’ deviation",
    Verdict.UNCLEAR: "not beyond the seeds’ deviation",
    Verdict.UNKNOWN: "not known from one seed",
    Verdict.NEITHER: "neither learned",
}


def describe_finding(comparison: Comparison, cells: list[Cell]) -> str:
    """Return a sentence on the use of ELMo that is best on dev, with the most examples."""
    best = find_best(cells)
    full = find_full_share(cells)
    without = [cell for cell in cells if (cell.variant, cell.share) == (WITHOUT, full)]
    score = f"{clean(comparison.main_score)} on {comparison.part}"
    if best is None:
        return (
            f"Without ELMo {_mean(without[0])} {score}, {_over_seeds(without[0])}; "
            "there is no run with ELMo on as many examples yet."
        )
    with_elmo = describe(best.variant).after_with
    if best.gain is not None and best.gain.verdict is Verdict.NEITHER:
        return (
            f"Neither learned: with {with_elmo} {_mean(best)} {score}, without "
            f"{_mean(without[0])}, {_over_seeds(best, without[0])}, and the same prediction for "
            f"everything scores {format_number(best.constant_score or 0.0)}; train for longer, on "
            "more examples or with other settings before comparing."
        )
    if best.gain is None:
        return (
            f"With {with_elmo} {_mean(best)} {score}, {_over_seeds(best)}; "
            "there is no run without ELMo on as many examples to compare with."
        )
    num_uses = sum(
        cell.share == full and cell.variant != WITHOUT and cell.num_seeds == best.num_seeds
        for cell in cells
    )
    choice = f" (the best on dev of {num_uses} uses of it)" if num_uses > 1 else ""
    digits = 1 if abs(best.gain.points) >= 0.95 else 2
    start = "With" if best.gain.points > 0 else "No gain: with"
    return (
        f"{start} {with_elmo}{choice} {_mean(best, digits)} {score}, "
        f"without {_mean(without[0], digits)}: "
        f"{_describe_gain(best.gain, digits)}, {_over_seeds(best, without[0])}."
    )


def describe_no_need(comparison: Comparison, cells: list[Cell]) -> str | None:
    """Return why examples saved are not counted, where shares would allow it."""
    baseline = find_baseline(cells)
    if len(comparison.shares) < 2 or baseline is None or baseline.has_learned:
        return None
    return (
        "The network without ELMo does not score better than the same prediction for everything, "
        "so how many examples ELMo saves cannot be said."
    )


def describe_need(need: Need) -> str:
    """Return a sentence on how many examples ELMo saves."""
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


def _describe_gain(gain: Gain, digits: int) -> str:
    size = format_number(abs(gain.points), digits=digits)
    errors = (
        ""
        if gain.error_share is None
        else f" ({format_percent(abs(gain.error_share))} of the errors)"
    )
    if gain.points == 0:
        return "no difference"
    match gain.verdict:
        case Verdict.GAIN:
            return f"a gain of {size} points{errors}"
        case Verdict.LOSS:
            return f"{size} points less"
        case Verdict.UNKNOWN:
            words = f"{size} points more{errors}" if gain.points > 0 else f"{size} points less"
            return f"{words}, of which chance may have any part"
        case Verdict.NEITHER:
            return "neither learned"
        case Verdict.UNCLEAR:
            words = "more" if gain.points > 0 else "less"
            return f"{size} points {words}, which is not beyond what seeds differ by"


def _mean(cell: Cell, digits: int = 2) -> str:
    return format_mean(cell.mean, cell.deviation, digits=digits)


def _over_seeds(*cells: Cell) -> str:
    counts = sorted({cell.num_seeds for cell in cells})
    if len(counts) == 1:
        return f"over {count(counts[0], 'seed')}" if counts[0] > 1 else "from one seed"
    return f"over {counts[0]} and {counts[1]} seeds"

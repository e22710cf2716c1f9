import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from elmore.errors import DataError
from elmore.explore.training_curves import MAX_POINTS, By, make_curves, read_curves, smooth


def train(step, loss):
    return {"kind": "train", "step": step, "tokens": 100 * step, "seconds": 36 * step, "loss": loss}


def heldout(step, forward_lm, backward_lm):
    return {
        "kind": "heldout",
        "step": step,
        "tokens": 100 * step,
        "seconds": 36 * step,
        "forward_perplexity": forward_lm,
        "backward_perplexity": backward_lm,
    }


LINES = [
    train(1, 9.0),
    train(2, 7.0),
    heldout(2, 50.0, 60.0),
    train(3, 6.0),
    heldout(4, 40.0, 45.0),
    {"kind": "end", "step": 4, "reason": "epochs"},
]


@pytest.mark.parametrize(
    ("by", "places"),
    [(By.STEPS, (1, 2, 3)), (By.TOKENS, (100, 200, 300)), (By.HOURS, (0.01, 0.02, 0.03))],
)
def test_each_curve_has_its_own_lines_at_the_positions_asked_for(by, places):
    curves = make_curves(LINES, name="run", by=by)
    assert (curves.loss.x, curves.loss.y) == (pytest.approx(places), (9.0, 7.0, 6.0))
    assert curves.forward_perplexity.y == (50.0, 40.0)
    assert curves.last_step == 4
    assert curves.backward_perplexity.y == (60.0, 45.0)
    assert curves.forward_perplexity.x == pytest.approx((places[1], 4 * places[0]))


def test_a_run_without_an_end_line_is_unfinished():
    assert make_curves(LINES[:-1], name="run", by=By.STEPS).last_step is None
    continued = [*LINES, {**LINES[0], "step": 5}]
    assert make_curves(continued, name="run", by=By.STEPS).last_step is None


def test_numbers_that_are_missing_are_left_out_and_counted():
    lines = [train(1, 9.0), train(2, None), train(3, math.nan), train(4, 10**400), train(5, 4.0),
             heldout(5, None, 30.0), {"kind": "train", "step": 6, "loss": 3.0}]  # fmt: skip
    curves = make_curves(lines, name="run", by=By.TOKENS)
    assert (curves.loss.x, curves.loss.y) == ((100, 500), (9.0, 4.0))
    assert curves.num_losses_left_out == 4
    assert len(curves.forward_perplexity) == 0
    assert curves.backward_perplexity.y == (30.0,)
    assert (curves.has_loss, curves.has_perplexity) == (True, True)


def test_a_run_without_lines_has_no_curves():
    curves = make_curves([], name="run", by=By.TOKENS)
    assert (curves.has_loss, curves.has_perplexity, len(curves.smoothed_loss)) == (False, False, 0)


def test_smoothing_takes_noise_away_and_leaves_a_straight_line():
    line = [20.0 - place for place in range(20)]
    assert smooth(line, half_width=3)[:17] == pytest.approx(line[:17])
    noise = [5.0 + (-1) ** place for place in range(601)]
    assert smooth(noise)[20:-20] == pytest.approx([5.0] * 561, abs=0.06)
    assert smooth([1.0, 2.0], half_width=0) == [1.0, 2.0]


def test_a_long_run_is_thinned_and_keeps_its_last_point():
    lines = [train(step, 1.0 / step) for step in range(1, 5 * MAX_POINTS + 3)]
    loss = make_curves(lines, name="run", by=By.STEPS).loss
    assert MAX_POINTS // 2 < len(loss) <= MAX_POINTS
    assert loss.x[-1] == 5 * MAX_POINTS + 2
    assert {later - x for x, later in pairwise(loss.x)} == {6}


def write_run(folder):
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return folder


def test_runs_are_named_by_their_shortest_unique_path_ends(tmp_path, monkeypatch):
    runs = [write_run(tmp_path / name) for name in ("a/small", "b/large")]
    assert [run.name for run in read_curves(runs, by=By.STEPS)] == ["small", "large"]
    runs.append(write_run(tmp_path / "b/small"))
    named = [run.name for run in read_curves(runs, by=By.STEPS)]
    assert named == ["a/small", "b/large", "b/small"]
    assert [run.name for run in read_curves([runs[0], runs[0]], by=By.STEPS)] == ["small"] * 2
    monkeypatch.chdir(runs[0])
    assert read_curves([Path()], by=By.STEPS)[0].name == "small"


def test_a_folder_that_is_not_a_run_is_named(tmp_path):
    with pytest.raises(DataError, match=r"no training run at .*nothing: it has no metrics\.jsonl"):
        read_curves([tmp_path / "nothing"], by=By.STEPS)

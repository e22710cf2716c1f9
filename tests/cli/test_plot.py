import json
import math
import sys
from itertools import pairwise

import pytest
import typer
from typer.testing import CliRunner

from elmore.cli.plot import By, What, _spread, plot
from elmore.errors import DataError, MissingExtraError

needs_matplotlib = pytest.mark.usefixtures("_matplotlib")


@pytest.fixture
def _matplotlib():
    pytest.importorskip("matplotlib", reason="needs elmore[plot]")


def write_run(folder, *, num_steps=40, has_heldout=True, loss=6.0):
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "metrics.jsonl").open("w") as file:
        for step in range(1, num_steps + 1):
            place = {"step": step, "tokens": 10_000 * step, "seconds": 36.0 * step}
            print(json.dumps({"kind": "train", **place, "loss": loss}), file=file)
            if has_heldout and step % 10 == 0:
                numbers = {
                    "forward_perplexity": 4000.0 / step,
                    "backward_perplexity": 4400.0 / step,
                }
                print(json.dumps({"kind": "heldout", **place, **numbers}), file=file)
    return folder


def draw(*runs, out=None, by=By.TOKENS, what=What.BOTH):
    plot(list(runs), out=out, by=by, what=what)


@needs_matplotlib
def test_a_run_is_drawn_into_its_folder(tmp_path):
    run = write_run(tmp_path / "run")
    draw(run)
    assert (run / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in run.iterdir()} == {"metrics.jsonl", "curve.png"}


@needs_matplotlib
def test_a_figure_says_whose_curves_they_are_and_how_they_ended(tmp_path):
    runs = [write_run(tmp_path / "small"), write_run(tmp_path / "a$b$_<她>", loss=5.251)]
    draw(*runs, out=tmp_path / "out.svg")
    text = (tmp_path / "out.svg").read_text()
    for words in (
        *(">small<", ">a$b$_&lt;她&gt;<", ">6.00<", ">5.25<", ">tokens<", ">400k<"),
        *("training loss", "held-out perplexity", "forward LM", "backward LM"),
        *(">forward 100.0<", ">backward 110.0<"),
    ):
        assert words in text, words


@needs_matplotlib
@pytest.mark.parametrize(
    ("what", "by", "shown", "not_shown"),
    [
        (What.LOSS, By.HOURS, ["training loss", ">hours<", ">0.4"], ["perplexity"]),
        (What.PERPLEXITY, By.STEPS, ["perplexity", ">steps<", ">run<", ">200<"], ["training loss"]),
    ],
)
def test_only_what_is_asked_for_is_drawn(tmp_path, what, by, shown, not_shown):
    draw(write_run(tmp_path / "run"), out=tmp_path / "out.svg", what=what, by=by)
    text = (tmp_path / "out.svg").read_text()
    assert [words for words in shown if words not in text] == []
    assert [words for words in not_shown if words in text] == []


@pytest.mark.slow
@needs_matplotlib
def test_a_run_that_has_just_started_is_plotted_as_far_as_it_goes(tmp_path, capsys):
    run = write_run(tmp_path / "new", num_steps=1, has_heldout=False)
    draw(run, out=tmp_path / "out.PDF")
    assert (tmp_path / "out.PDF").read_bytes().startswith(b"%PDF")
    assert "new: no held-out perplexity logged yet" in capsys.readouterr().err
    with pytest.raises(DataError, match=r"new: no held-out perplexity logged yet; .* --what loss"):
        draw(run, what=What.PERPLEXITY)
    draw(run, write_run(tmp_path / "old"), out=tmp_path / "two.svg", what=What.PERPLEXITY)
    assert "forward 100.0" in (tmp_path / "two.svg").read_text()


@needs_matplotlib
def test_losses_that_are_not_numbers_are_reported(tmp_path, capsys):
    run = write_run(tmp_path / "lost", loss=math.nan)
    draw(run, out=tmp_path / "out.svg")
    assert "lost: 40 losses are not finite" in capsys.readouterr().err
    with pytest.raises(DataError, match="lost: no training loss is finite; plot --what perp"):
        draw(run, what=What.LOSS)


def test_a_finished_run_with_nothing_logged_is_not_waited_for(tmp_path):
    run = write_run(tmp_path / "short", num_steps=0)
    (run / "metrics.jsonl").write_text('{"kind": "end", "step": 5, "reason": "all steps taken"}\n')
    with pytest.raises(DataError) as caught:
        draw(run)
    assert str(caught.value) == (
        "short ended after 5 steps, before the first line of the log, so there is nothing to plot; "
        "train for more steps, or again with --restart --set run.log_steps=1"
    )


@needs_matplotlib
def test_a_run_with_one_loss_is_a_point_and_reported(tmp_path, capsys):
    run = write_run(tmp_path / "short", num_steps=1)
    with (run / "metrics.jsonl").open("a") as file:
        print('{"kind": "end", "step": 1, "reason": "all steps taken"}', file=file)
    draw(run, out=tmp_path / "out.svg")
    assert "short: only the training loss of the last steps was logged, so it is a point" in (
        capsys.readouterr().err
    )


@needs_matplotlib
def test_a_finished_run_is_plotted_without_what_it_never_measured(tmp_path, capsys):
    run = write_run(tmp_path / "done", num_steps=1, has_heldout=False)
    with (run / "metrics.jsonl").open("a") as file:
        print('{"kind": "end", "step": 1, "reason": "all steps taken"}', file=file)
    draw(run, out=tmp_path / "out.svg")
    assert "done: no held-out perplexity was logged\n" in capsys.readouterr().err
    with pytest.raises(DataError, match="no held-out perplexity was logged; plot --what loss"):
        draw(run, what=What.PERPLEXITY)


def test_what_cannot_be_drawn_is_a_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    run = write_run(tmp_path / "run")
    with pytest.raises(DataError, match=r"curve\.jpg; end its name in \.png, \.svg, \.pdf"):
        draw(run, out=tmp_path / "curve.jpg")
    with pytest.raises(DataError, match=r"no training run at .*nothing"):
        draw(run, tmp_path / "nothing")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(DataError, match=r"no training run at .*circle"):
        draw(tmp_path / "circle")
    with pytest.raises(
        DataError, match="empty: no loss and no held-out perplexity logged yet; wait"
    ):
        draw(write_run(tmp_path / "empty", num_steps=0))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"elmore\[plot\]"):
        draw(run)
    assert {path.name for path in run.iterdir()} == {"metrics.jsonl"}


@needs_matplotlib
def test_the_command_reads_its_options(tmp_path):
    app = typer.Typer()
    app.command()(plot)
    runs = [str(write_run(tmp_path / name)) for name in ("one", "two")]
    options = ["--by", "hours", "--what", "loss", "-o", str(tmp_path / "out.svg")]
    result = CliRunner().invoke(app, [*runs, *options])
    assert result.exit_code == 0, result.output
    assert ">hours<" in (tmp_path / "out.svg").read_text()


def test_numbers_next_to_a_panel_do_not_lie_on_each_other():
    assert _spread([0.1, 0.5, 0.9]) == [0.1, 0.5, 0.9]
    placed = _spread([0.5, 0.5, 0.51])
    assert min(b - a for a, b in pairwise(placed)) == pytest.approx(0.055)
    assert sum(placed) / 3 == pytest.approx(1.51 / 3)

"""The benchmark scripts of pretraining, from a text to their tables, on the smallest corpus."""

import json
import sys

import pytest

from benchmarks import pretraining_curves, pretraining_speed
from benchmarks.pretraining_parts import Case
from elmore.corpus.prepare import prepare_corpus
from elmore.corpus.settings import PrepareSettings

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")

CONFIG = """
[model.lstm]
cell_dim = 12
output_dim = 5
[model.characters]
max_chars = 9
embedding_dim = 3
filters = [[1, 2], [2, 3]]
[softmax]
kind = "sampled"
num_negatives = 4
[training]
rows = 4
window = 5
"""


@pytest.fixture
def folder(tmp_path):
    sentence = "The dad fed a bad egg to the cat .\nA cab came .\n"
    text = tmp_path / "text.txt"
    text.write_text("\n".join([sentence * 5] * 4))
    (tmp_path / "model.toml").write_text(CONFIG)
    settings = PrepareSettings(heldout=0.25, min_count=1)
    prepare_corpus([text], tmp_path / "corpus", settings=settings, num_processes=1)
    return tmp_path


@pytest.mark.slow
def test_curves_are_kept_drawn_and_not_trained_twice(folder, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    command = [folder / "corpus", folder / "out", "--config", folder / "model.toml"]
    command += ["--tokens", 180, "--every", 4, "--plot", folder / "curves.png"]
    command += ["--only", "elmore-adagrad", "plain-adagrad"]
    monkeypatch.setattr(sys, "argv", ["curves", *map(str, command)])
    pretraining_curves.main()
    curves = [
        json.loads((folder / "out" / f"{name}-adagrad.json").read_text())
        for name in ("elmore", "plain")
    ]
    for curve in curves:
        assert curve["is_finished"]
        assert [point["step"] for point in curve["points"]] == [0, 4, 8, 10]
        assert curve["points"][-1]["perplexity"] < curve["points"][0]["perplexity"]
        assert curve["points"][-1]["seconds"] > 0
    tokens = [[point["tokens"] for point in curve["points"]] for curve in curves]
    assert tokens[0] == tokens[1] == sorted(tokens[0])
    assert (folder / "curves.png").stat().st_size > 0
    capsys.readouterr()
    pretraining_curves.main()
    assert capsys.readouterr().out.count("finished before") == 2
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--set", "training.seed=2"])
    with pytest.raises(SystemExit, match="other settings"):
        pretraining_curves.main()


def test_seconds_are_those_of_the_first_point_that_is_as_good():
    points = [{"seconds": 1.0, "perplexity": 90.0}, {"seconds": 2.0, "perplexity": 50.0}]
    assert pretraining_curves.find_seconds(points, 60.0) == 2.0
    assert pretraining_curves.find_seconds(points, 40.0) is None


def test_every_stage_of_a_run_is_timed(folder):
    case = Case.open(folder / "corpus", config=folder / "model.toml").lasting(60)
    clock, num_tokens = pretraining_speed.run_with_clock(case, folder / "run")
    assert num_tokens == pytest.approx(60, rel=0.2)
    stages = {"windows", "spelling", "negatives", pretraining_speed.STEP, pretraining_speed.REST}
    stages |= {pretraining_speed.MEASURING, pretraining_speed.SAVING}
    assert set(clock.seconds) == stages
    assert all(seconds > 0 for seconds in clock.seconds.values())

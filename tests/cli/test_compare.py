"""`elmore compare`: a table on standard output, a page in the folder, mistakes in a sentence."""

import json

import pytest

from tests.cli.small_tasks import SMALL, assert_refused
from tests.tasks.fit.made_up import Place

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)


def test_variants_are_trained_and_reported(elmore_command, place):
    command = ["compare", "tags", "--data", "data", "--model", "model", "--seeds", "2", *SMALL]
    result = elmore_command(*command)
    assert result.status == 0
    assert "without" in result.out
    assert result.out.rstrip().endswith("compare-tags/report.html has the plots")
    announced = [line for line in result.err.splitlines() if line.startswith("run ")]
    assert announced[0] == "run 1 of 4: without-100%-seed1"
    folder = place.folder / "compare-tags"
    assert len(list((folder / "runs").iterdir())) == 4
    again = elmore_command(*command, "--json")
    assert again.json == json.loads((folder / "report.json").read_text())
    assert len(again.json["runs"]) == 4
    assert "epoch" not in again.err, "nothing is trained again"
    assert again.err.count(", already done\n") == 4


def test_mistakes_are_one_sentence_and_nothing_is_written(elmore_command, place):
    (place.folder / "broken").mkdir()
    (place.folder / "broken" / "train.txt").write_text("a\tA\n\n")
    (place.folder / "broken" / "dev.txt").write_text("a\tA\nb\n")
    before = sorted(path.name for path in place.folder.iterdir())
    compare = ["compare", "tags", "--model", "model", *SMALL]
    data = ["--data", "data"]
    for arguments, message in (
        (["compare", "parsing", *data], "unknown task 'parsing'"),
        ([*compare, *data, "--shares", "0"], "--shares has '0'; give percents above 0"),
        ([*compare, *data, "--shares", "1,many"], "--shares has 'many'"),
        ([*compare, *data, "--shares", "nan"], "--shares has 'nan'"),
        ([*compare, *data, "--variants", "middle"], "unknown variant 'middle'"),
        ([*compare, *data, "--variants", ","], "no variants given"),
        ([*compare, *data, "--set", "elmo.where=none"], "elmo.where is 'none'"),
        ([*compare, *data, "--set", "training.epochs=3"], "unknown setting 'epochs'"),
        ([*compare, "--data", "broken"], "dev.txt, line 2"),
        ([*compare], "data is missing; give a folder (data), or both train and dev"),
        ([*compare, *data, "-o", "data"], "data contains other files"),
        ([*compare, *data, "--model", "./nowhere"], "there is no model at './nowhere'"),
    ):
        assert_refused(elmore_command(*arguments), message)
        assert sorted(path.name for path in place.folder.iterdir()) == before, arguments


def test_networks_that_can_only_predict_one_label_are_not_compared(elmore_command, place):
    folder = place.folder / "same"
    folder.mkdir()
    for part in ("train", "dev"):
        (folder / f"{part}.tsv").write_text("a bad cafe\tgood\n" * 6 + "a bad cafe\tbad\n" * 4)
    small = [change for change in SMALL if "task.column" not in change]
    command = ["compare", "texts", "--data", "same", "--model", "model", "--seeds", "2", *small]
    result = elmore_command(*command, "--shares", "50,100")
    assert result.status == 0
    assert (
        "Neither network learned: with ELMo at the input, accuracy on dev is 60.00 ± 0.00"
        in result.out
    )
    assert "a constant prediction scores 60.00" in result.out
    assert "+0.00" not in result.out
    assert "are enough" not in result.out
    page = (place.folder / "compare-texts" / "report.html").read_text()
    assert "Neither network learned: " in page
    assert "+0.00" not in page
    report = elmore_command(*command, "--shares", "50,100", "--json").json
    assert report["finding"].startswith("Neither network learned: ")
    assert {run["constant_scores"]["dev"] for run in report["runs"]} == {60.0}

"""`elmore predict`: one line a text as it comes, files whole or not at all."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import elmore
from elmore.cli.predict import PIPE_CLOSED, _open
from tests.cli.small_tasks import assert_refused
from tests.tasks.fit.made_up import Place

SHORT = "training.max_epochs=1"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("predict"))
    made.report = made.fit("task", SHORT, "elmo.where=input")
    made.fit("plain", SHORT)
    return made


@pytest.fixture(autouse=True)
def _inside(place, monkeypatch):
    monkeypatch.chdir(place.folder)


@pytest.mark.slow
def test_an_object_a_line(elmore_command, place):
    (place.folder / "letter.txt").write_text("A bad cafe. Dada!\n")
    result = elmore_command("predict", "task", "letter.txt")
    assert result.status == 0
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["tokens"] for line in lines] == [["A", "bad", "cafe", "."], ["Dada", "!"]]
    assert all(len(line["tags"]) == len(line["tokens"]) for line in lines)
    assert result.err.startswith("6 tokens, ")


def test_one_token_is_singular(elmore_command, place):
    (place.folder / "word.txt").write_text("Dada\n")
    assert elmore_command("predict", "plain", "word.txt").err.startswith("1 token, ")


def test_columns_and_scores(elmore_command, place):
    command = ["predict", "task", "data/test.txt", "--score", "--form", "columns"]
    printed = elmore_command(*command)
    accuracy = place.report.scores["test"]["accuracy"]
    assert f"accuracy {accuracy:.2f}" in printed.err, "predictions have standard output"
    written = elmore_command(*command, "-o", "found.txt")
    assert written.out == f"accuracy {accuracy:.2f}\n"
    assert (place.folder / "found.txt").read_text() == printed.out
    gold = (place.data / "test.txt").read_text()
    assert [line.split("\t")[0] for line in printed.out.strip().split("\n")] == [
        line.split("\t")[0] for line in gold.strip().split("\n")
    ]


def test_a_lone_surrogate_is_written_as_the_escape_that_json_has(tmp_path):
    content = {"answer": "\ud800 ü"}
    with _open(tmp_path / "found.jsonl") as file:
        file.write(json.dumps(content, ensure_ascii=False))
    assert json.loads((tmp_path / "found.jsonl").read_text(encoding="utf-8")) == content


def test_mistakes_are_one_sentence_and_nothing_is_written(elmore_command, place):
    (place.folder / "broken.txt").write_text("a\tA\n" * 20 + "b\n")
    before = sorted(path.name for path in place.folder.iterdir())
    for arguments, message in (
        (["nowhere", "data/dev.txt"], "nowhere has no trained task"),
        (["data", "data/dev.txt"], "data has no trained task"),
        (["plain", "nowhere.txt"], "there is no file nowhere.txt"),
        (["plain", "broken.txt"], "broken.txt, line 21"),
        (["plain", "data/dev.txt", "--form", "answers"], "--form answers does not fit tags"),
        (["task", "data/dev.txt", "--model", "./nowhere"], "there is no model at './nowhere'"),
        (["plain", "data/dev.txt", "--device", "abacus"], "cannot compute on device"),
    ):
        assert_refused(elmore_command("predict", *arguments, "-o", "out.txt"), message)
        assert sorted(path.name for path in place.folder.iterdir()) == before


@pytest.mark.slow
def test_nobody_complains_when_the_reader_has_enough(place):
    """As behind `| head -1`: no traceback, and no complaint when Python ends."""
    (place.folder / "long.txt").write_text("a bad cafe\n\n" * 4000)
    program = "from elmore.cli.app import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "predict", "plain", "long.txt"],
        cwd=place.folder,
        env={**os.environ, "PYTHONPATH": str(Path(elmore.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline().startswith(b'{"tokens"')
        process.stdout.close()
        complaint = process.stderr.read()
        assert process.wait() == PIPE_CLOSED
    assert complaint == b""


def test_the_old_name_of_a_flag_still_works_and_is_noted(place, elmore_command):
    result = elmore_command("predict", "task", "data/dev.txt", "--elmo", "./nowhere")
    assert result.status == 2
    assert "note: --elmo is now called --model" in result.err
    assert "there is no model at './nowhere'" in result.err

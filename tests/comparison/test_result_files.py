import json
import math
from dataclasses import replace

import pytest

from elmore.comparison.result_files import (
    read_comparison,
    read_run,
    write_comparison,
    write_run,
)
from elmore.errors import DataError
from tests.comparison.made_up import make_comparison, make_point, make_run

COMPARISON = make_comparison(
    [make_run(), make_run("input", share=0.25)],
    task="她 & \udc80",
    perplexity={"before": 90.5, "after": 61.0},
    settings={"task": {"dims": [1, 2], "words": None}},
)


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "new" / "report.json"
    for comparison in (COMPARISON, replace(COMPARISON, perplexity=None)):
        write_comparison(comparison, path)
        assert read_comparison(path) == comparison
    write_run(COMPARISON.runs[1], path)
    assert read_run(path) == COMPARISON.runs[1]


def test_a_file_of_an_earlier_version_is_read(tmp_path):
    comparison = make_comparison([make_run()])
    write_comparison(comparison, tmp_path / "report.json")
    values = json.loads((tmp_path / "report.json").read_text())
    for name in ("finding", "cells"):
        del values[name]
    del values["runs"][0]["constant_scores"]
    (tmp_path / "old.json").write_text(json.dumps(values))
    assert read_comparison(tmp_path / "old.json") == comparison


def test_a_loss_that_is_not_a_number_is_null(tmp_path):
    path = tmp_path / "run.json"
    curve = [make_point(1, dev=3.0, loss=math.inf), make_point(2, dev=4.0)]
    write_run(make_run(curve=curve), path)
    assert json.loads(path.read_text())["curve"][0]["loss"] is None
    first, second = read_run(path).curve
    assert math.isnan(first.loss)
    assert (first.dev, second) == (3.0, curve[1])


def change(values, place, value):
    """Set what is at a place in JSON; `...` takes it away."""
    *way, last = place
    for step in way:
        values = values[step]
    if value is ...:
        del values[last]
    else:
        values[last] = value


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (["task"], ..., "a comparison has no 'task'"),
        (["task"], 3, "'task' of a comparison is or contains 3; expected text"),
        (["runs"], {}, "'runs' of a comparison is or contains {}; expected a list"),
        (["runs"], [], "has no runs"),
        (["runs", 0], "x", "a run is 'x'; expected an object"),
        (["runs", 0, "share"], 2.0, "has share 2.0"),
        (["runs", 0, "share"], math.nan, "'share' of a run is or contains nan; expected a number"),
        (["runs", 0, "seed"], 1.5, "'seed' of a run is or contains 1.5; expected a whole number"),
        (["runs", 0, "seed"], True, "expected a whole number"),
        (
            ["runs", 0, "scores", "dev", "f1"],
            "80",
            "'scores' of a run is or contains '80'; expected a num",
        ),
        (["runs", 0, "scores", "dev", "f1"], 10**400, "expected a number"),
        (["runs", 0, "scores", "dev"], {}, "has no 'f1' on dev"),
        (["runs", 0, "curve", 1, "epoch"], ..., "a point of a curve has no 'epoch'"),
        (["runs", 1, "layer_shares", "below"], 0.5, "'layer_shares' .* 0.5; expected a list"),
        (["num_examples"], [3], "'num_examples' .* expected an object"),
        (["perplexity"], "low", "'perplexity' .* expected an object"),
        (["format"], 2, "has format 2, this version of elmore reads 1; update"),
        (["format"], ..., "has format None"),
    ],
)
def test_what_a_file_has_wrong_is_named(tmp_path, place, value, complaint):
    path = tmp_path / "report.json"
    write_comparison(COMPARISON, path)
    values = json.loads(path.read_text())
    change(values, place, value)
    path.write_text(json.dumps(values))
    with pytest.raises(DataError, match=complaint) as error:
        read_comparison(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"[" * 100_000, b"[]", b"3"], ids=lambda content: content[:3]
)
def test_a_file_that_is_not_json_is_named(tmp_path, content):
    path = tmp_path / "report.json"
    path.write_bytes(content)
    for read in (read_comparison, read_run):
        with pytest.raises(DataError, match="run the comparison again") as error:
            read(path)
        assert str(path) in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*nothing\.json: No such file"):
        read_comparison(tmp_path / "nothing.json")

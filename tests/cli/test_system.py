"""`elmore info --system`: what elmore runs on."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import torch

import elmore
from elmore.cli import system
from elmore.kernels import library

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_the_facts_are_those_of_this_machine(elmore_command):
    facts = elmore_command("info", "--system", "--json").json
    assert facts["elmore"] == elmore.__version__
    assert facts["kernel"] == library.describe_kernel()
    assert facts["threads"] == torch.get_num_threads()
    assert facts["libraries"]["torch"] == torch.__version__
    assert facts["kernel"] in [*facts["kernels_usable"], "torch"]
    assert set(facts["kernels_usable"]) <= set(facts["kernels_built"])
    folder = Path(library.__file__).parent
    assert all(any(folder.glob(f"_{name}.*so")) for name in facts["kernels_built"])


def test_the_table_has_a_line_for_each(elmore_command, monkeypatch):
    monkeypatch.setenv("ELMORE_KERNEL", "torch")
    shown = elmore_command("info", "--system").out
    rows = dict(line.split(None, 1) for line in shown.splitlines() if "[" in line or "_" in line)
    assert rows["ELMORE_KERNEL"].strip() == "torch"
    assert rows["elmore[tasks]"].startswith("scipy")
    assert "note" not in shown


def test_without_kernels_it_says_why_and_what_to_do(elmore_command, tmp_path, monkeypatch):
    monkeypatch.delenv("ELMORE_KERNEL", raising=False)
    monkeypatch.setenv("ELMORE_KERNEL_FOLDER", str(tmp_path))
    monkeypatch.setattr(library.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(library.sys, "platform", "linux")
    result = elmore_command("info", "--system", "--json")
    assert result.json["kernel"] == "torch"
    assert (result.json["kernels_built"], result.json["cpu_features"]) == ([], None)
    assert "not built" in result.json["kernel_note"]
    assert "run in a clone of elmore: pip install" in result.json["kernel_note"]
    assert result.err == ""  # the note is in the table, not beside it
    table = elmore_command("info", "--system").out
    assert any(line.split() == ["kernels", "built", "none"] for line in table.splitlines())


def test_a_kernel_that_is_not_there_is_shown_instead_of_failing(elmore_command, monkeypatch):
    monkeypatch.setenv("ELMORE_KERNEL", "nonsense")
    facts = elmore_command("info", "--system", "--json").json
    assert facts["kernel"] is None
    assert "ELMORE_KERNEL is 'nonsense'" in facts["kernel_note"]


def test_a_model_next_to_it_is_a_mistake(elmore_command):
    result = elmore_command("info", "model/", "--system")
    assert result.status == 2
    assert "leave out the model" in result.err


def test_missing_extras_are_shown(elmore_command, monkeypatch):
    def find(name):
        if name == "pyarrow":
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(system, "version", find)
    facts = elmore_command("info", "--system", "--json").json
    assert facts["extras"]["parquet"] == {"library": "pyarrow", "version": None}
    assert facts["extras"]["plot"]["version"] == "1.0"
    rows = system.to_rows(system.describe_system())
    assert rows["elmore[parquet]"] == "not installed"


@pytest.mark.parametrize("named", ["dependencies", "extras"])
def test_the_lists_are_those_of_the_project(named):
    if named == "dependencies":
        found = [name.partition(">")[0] for name in PROJECT["dependencies"]]
        assert sorted(found) == sorted(system.LIBRARIES)
    else:
        extras = {
            extra: next(
                found for name in names if (found := re.split(r"[\[>]", name)[0]) != "elmore"
            )
            for extra, names in PROJECT["optional-dependencies"].items()
            if extra not in ("dev", "docs", "integrations", "baselines")
        }
        assert extras == system.EXTRAS

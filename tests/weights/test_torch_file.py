"""Code in pickles is not run, and a torch file of other things than weights is refused."""

import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmore.weights.torch_file import read_torch_file
from tests.weights import peer_files
from tests.weights.refusals import assert_refused


class Harmful:
    """Runs a command when unpickled by a program that lets it."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


def harms(folder: Path) -> dict[str, Harmful]:
    mark = str(folder / "harm")
    return {
        "system": Harmful(os.system, f"touch {mark}"),
        "eval": Harmful(eval, f"open({mark!r}, 'w').close()"),
        "mkdir": Harmful(os.mkdir, mark),
        "path": Harmful(Path.touch, Path(mark)),
        "load": Harmful(torch.load, mark),
    }


@pytest.mark.parametrize("form", ["zip", "torch 0.4", "plain pickle"])
@pytest.mark.parametrize("name", ["system", "eval", "mkdir", "path", "load"])
@pytest.mark.parametrize("place", ["alone", "beside weights", "as a weight"])
def test_code_in_a_pickle_is_not_run(name, form, place, tmp_path):
    harm = harms(tmp_path)[name]
    content = {
        "alone": harm,
        "beside weights": [{"a": torch.zeros(2)}, harm],
        "as a weight": {"a": torch.zeros(2), "b": harm},
    }[place]
    path = tmp_path / "encoder.pkl"
    if form == "plain pickle":
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "zip")
    assert_refused(lambda: read_torch_file(path), r"encoder\.pkl")
    assert peer_files.names(tmp_path) == ["encoder.pkl"]


def test_torch_is_told_to_expect_weights_only(tmp_path, monkeypatch):
    torch.save({"a": torch.zeros(2)}, tmp_path / "encoder.pkl")
    asked: dict[str, Any] = {}
    load = torch.load
    monkeypatch.setattr(
        torch, "load", lambda *a, **options: asked.update(options) or load(*a, **options)
    )
    assert list(read_torch_file(tmp_path / "encoder.pkl")) == ["a"]
    assert asked["weights_only"] is True


def test_the_commands_above_would_have_run(tmp_path):
    for name in ("system", "eval", "mkdir"):
        pickle.loads(pickle.dumps(harms(tmp_path)[name]))
        harm = tmp_path / "harm"
        assert harm.exists()
        harm.rmdir() if harm.is_dir() else harm.unlink()


class Sub(torch.nn.Module):
    """A whole module, as careless programs save them."""


NO_WEIGHTS: dict[str, Any] = {
    "a module": Sub(),
    "a list": [torch.zeros(2)],
    "a tensor": torch.zeros(2),
    "numbers": {"a": 3.5},
    "ids for names": {3: torch.zeros(2)},
    "nested": {"a": {"b": torch.zeros(2)}},
    "integers": {"a": torch.zeros(2, dtype=torch.int64)},
    "complex numbers": {"a": torch.zeros(2, dtype=torch.complex64)},
    "sparse": {"a": torch.eye(3).to_sparse()},
    "without data": {"a": torch.zeros(2, device="meta")},
    "eight bits": {"a": torch.zeros(2).to(torch.float8_e5m2)},
    "an array of numpy": {"a": np.zeros(2)},
}


@pytest.mark.parametrize("content", NO_WEIGHTS.values(), ids=NO_WEIGHTS)
@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "torch 0.4"])
def test_a_torch_file_of_other_things_is_refused(content, is_zip, tmp_path):
    path = tmp_path / "encoder.pkl"
    torch.save(content, path, _use_new_zipfile_serialization=is_zip)
    assert_refused(lambda: read_torch_file(path), r"encoder\.pkl")


def test_a_torchscript_archive_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "encoder.pkl", "w") as archive:
        for name in ("data.pkl", "constants.pkl", "version"):
            archive.writestr(f"archive/{name}", b"3\n")
    assert_refused(lambda: read_torch_file(tmp_path / "encoder.pkl"), r"encoder\.pkl")


def test_an_archive_hidden_behind_other_bytes_is_refused(tmp_path):
    path = tmp_path / "encoder.pkl"
    torch.save({"a": torch.zeros(2)}, path)
    path.write_bytes(b"#!" + path.read_bytes())
    assert_refused(lambda: read_torch_file(path), r"encoder\.pkl")

"""Code in pickles is not run, and a torch file of other things than weights is refused."""

import io
import os
import pickle
import struct
import tracemalloc
import zipfile
from collections import OrderedDict
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


@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "torch 0.4"])
def test_no_unpickler_sees_the_file(is_zip, tmp_path, monkeypatch):
    path = tmp_path / "encoder.pkl"
    torch.save({"a": torch.ones(2)}, path, _use_new_zipfile_serialization=is_zip)

    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise AssertionError("weights were unpickled")

    for module, name in ((torch, "load"), (pickle, "load"), (pickle, "loads")):
        monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    assert read_torch_file(path)["a"].tolist() == [1.0, 1.0]


def make_weights() -> dict[str, torch.Tensor]:
    numbers = torch.arange(12.0)
    return {
        "whole": numbers.reshape(3, 4),
        "turned": numbers.reshape(3, 4).T,
        "part": numbers[5:8],
        "learned": torch.nn.Parameter(numbers[:2].clone()),
        "double": numbers.double() / 3,
        "half": (numbers / 3).half(),
        "brain": (numbers / 3).bfloat16(),
        "single number": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
    }


@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "torch 0.4"])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_weights_of_any_protocol_are_what_torch_loads(is_zip, protocol, tmp_path):
    path = tmp_path / "encoder.pkl"
    module = torch.nn.LSTM(2, 3)
    for weights in (make_weights(), module.state_dict()):
        torch.save(weights, path, pickle_protocol=protocol, _use_new_zipfile_serialization=is_zip)
        found = read_torch_file(path)
        assert list(found) == list(weights)
        for name, weight in weights.items():
            assert found[name].dtype == torch.float32
            assert torch.equal(found[name], weight.detach().float())


def write_archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"archive/{name}", content)
    return path


# `{"a": bytearray(1000)}`, by protocols 2 and 4: calls that torch's own list of safe ones has.
CALLS = {
    2: b"\x80\x02}X\x01\x00\x00\x00acbuiltins\nbytearray\nM\xe8\x03\x85Rs.",
    4: b"\x80\x04}\x8c\x01a\x8c\x08builtins\x8c\x09bytearray\x93M\xe8\x03\x85Rs.",
}


@pytest.mark.parametrize("protocol", CALLS)
@pytest.mark.parametrize("name", ["data.pkl", "DATA.PKL", "Data.pkl", "data", "data/0", "notes"])
def test_a_call_is_refused_whatever_the_name_of_its_member(name, protocol, tmp_path):
    call = CALLS[protocol]
    path = write_archive(tmp_path / "encoder.pkl", {name: call, "version": b"3\n"})
    assert_refused(lambda: read_torch_file(path), r"encoder\.pkl")


def test_members_whose_names_differ_only_in_case_are_refused(tmp_path):
    path = tmp_path / "encoder.pkl"
    torch.save({"a": torch.zeros(2)}, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("encoder/DATA.PKL", CALLS[2])
    assert_refused(lambda: read_torch_file(path), "two members .*DATA.PKL")


# A dictionary of "a" and what follows; each would take memory or time without end elsewhere.
START = b"\x80\x04}\x8c\x01a"
LARGE_PICKLES = {
    "memo index": START + b"r\xff\xff\xff\xff" + b"Ns.",
    "bytearray": START + b"\x96" + (2**40).to_bytes(8, "little") + b"s.",
    "string": START + b"\x8d" + (2**40).to_bytes(8, "little") + b"s.",
    "integer": START + b"\x8b" + (10**6).to_bytes(4, "little") + bytes(10**6) + b"s.",
    "buffer": START + b"\x97s.",
    "key": b"\x80\x04})" + b"\x94h\x00\x86" * 200 + b"Ns.",
    "unused": START + b"]" * 10**7 + b"Ns.",
}


@pytest.mark.slow
@pytest.mark.parametrize("content", LARGE_PICKLES.values(), ids=LARGE_PICKLES)
@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "torch 0.4"])
def test_no_pickle_takes_more_memory_than_weights_need(content, is_zip, tmp_path):
    path = tmp_path / "encoder.pkl"
    if is_zip:
        write_archive(path, {"data.pkl": content, "version": b"3\n"})
    else:
        torch.save({}, path, _use_new_zipfile_serialization=False)
        start = path.read_bytes().removesuffix(pickle.dumps({}, 2) + pickle.dumps([], 2))
        path.write_bytes(start + content + pickle.dumps([], 2))
    tracemalloc.start()
    assert_refused(lambda: read_torch_file(path), r"encoder\.pkl")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**25


VIEWS = {
    "behind the end": (7, (2,), (1,)),
    "before the start": (-1, (2,), (1,)),
    "backwards": (7, (2,), (-1,)),
    "negative size": (0, (-2,), (1,)),
    "too wide a stride": (0, (2,), (8,)),
    "fewer strides": (0, (2, 2), (1,)),
}


@pytest.mark.parametrize(("offset", "size", "stride"), VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "torch 0.4"])
def test_a_weight_outside_its_storage_is_refused(offset, size, stride, is_zip, tmp_path):
    path = tmp_path / "encoder.pkl"
    numbers = torch.zeros(8)
    storage = torch.storage.TypedStorage(
        wrap_storage=numbers.untyped_storage(), dtype=numbers.dtype, _internal=True
    )
    rebuild = torch._utils._rebuild_tensor_v2
    view = Harmful(rebuild, storage, offset, size, stride, False, OrderedDict())
    torch.save({"a": view}, path, _use_new_zipfile_serialization=is_zip)
    assert_refused(lambda: read_torch_file(path), r"encoder\.pkl.*'a'")


def test_numbers_of_the_other_byte_order_are_turned_around(tmp_path):
    path = tmp_path / "encoder.pkl"
    torch.save({"a": torch.tensor([1.0, -2.5])}, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            turned = b"".join(content[place : place + 4][::-1] for place in (0, 4))
            other = {"byteorder": b"big", "0": turned}.get(name.rsplit("/")[-1], content)
            archive.writestr(name, other)
    assert read_torch_file(path)["a"].tolist() == [1.0, -2.5]


STORAGE = object()


class LegacyPickler(pickle.Pickler):
    """Writes a part of a storage as torch 0.3 and 0.4 did: key, start and length behind it."""

    def persistent_id(self, obj: object) -> object:
        view = ("view", 2, 3)
        return ("storage", torch.FloatStorage, "7", "cpu", 6, view) if obj is STORAGE else None


def test_a_part_of_a_storage_of_torch_04_is_read(tmp_path):
    path = tmp_path / "encoder.pkl"
    torch.save({}, path, _use_new_zipfile_serialization=False)
    start = path.read_bytes().removesuffix(pickle.dumps({}, 2) + pickle.dumps([], 2))
    content = io.BytesIO()
    rebuild = torch._utils._rebuild_tensor
    LegacyPickler(content, 2).dump({"a": Harmful(rebuild, STORAGE, 1, (2,), (1,))})
    numbers = struct.pack("<q6f", 6, *range(6))
    path.write_bytes(start + content.getvalue() + pickle.dumps(["7"], 2) + numbers)
    assert read_torch_file(path)["a"].tolist() == [3.0, 4.0]


def test_weights_saved_by_python_2_are_read(tmp_path):
    path = tmp_path / "encoder.pkl"
    torch.save({"weight": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    content = path.read_bytes()
    for name in (b"weight", b"storage", b"cpu"):  # strings of bytes, of one length byte
        content = content.replace(
            b"X" + struct.pack("<I", len(name)) + name, b"U" + bytes([len(name)]) + name
        )
    assert content.count(b"U") >= 3
    path.write_bytes(content)
    assert read_torch_file(path)["weight"].tolist() == [1.0, 1.0]


@pytest.mark.slow
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

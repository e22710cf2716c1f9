"""Files made to harm: each is refused in one sentence, before memory is taken or code is run."""

import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from elmore.errors import ElmoreError, ModelError
from elmore.weights.bilm_tf import read_bilm_tf
from elmore.weights.json_file import read_json
from elmore.weights.loading import load_model
from elmore.weights.torch_file import read_torch_file
from tests import tiny
from tests.weights import peer_files
from tests.weights.peer_files import make_arrays, make_options

CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"


def assert_refused(load: Callable[[], object], match: str = ".") -> None:
    with pytest.raises(ModelError, match=match) as caught:
        load()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800


# HDF5: arrays that are elsewhere, or nowhere.


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return peer_files.write_bilm_tf_files(tmp_path, make_options(), make_arrays(make_options()))


def put_in_place(path: Path, name: str, put: Callable[[h5py.File], None]) -> None:
    with h5py.File(path, "r+") as file:
        del file[name]
        put(file)


def secret_file(folder: Path) -> Path:
    with h5py.File(folder / "secret.hdf5", "w") as file:
        file["B"] = np.ones(24, np.float32)
    np.ones(24, np.float32).tofile(folder / "secret.bin")
    return folder / "secret.hdf5"


def test_an_external_link_is_not_followed(files, tmp_path):
    secret = secret_file(tmp_path)

    def put(file: h5py.File) -> None:
        file[f"{CELL}/B"] = h5py.ExternalLink(str(secret), "B")

    put_in_place(files[0], f"{CELL}/B", put)
    assert_refused(lambda: read_bilm_tf(*files), "lacks the array")


def test_an_external_link_to_a_group_is_not_followed(files, tmp_path):
    other = peer_files.write_bilm_tf_files(
        tmp_path / "other", make_options(), make_arrays(make_options())
    )[0]

    def put(file: h5py.File) -> None:
        file["RNN_0"] = h5py.ExternalLink(str(other), "RNN_0")

    put_in_place(files[0], "RNN_0", put)
    assert_refused(lambda: read_bilm_tf(*files), "lacks the array")


@pytest.mark.parametrize(
    "target", ["/RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/B", f"/{CELL}/B", "/no"]
)
def test_a_soft_link_is_not_followed(target, files):
    def put(file: h5py.File) -> None:
        file[f"{CELL}/B"] = h5py.SoftLink(target)

    put_in_place(files[0], f"{CELL}/B", put)
    assert_refused(lambda: read_bilm_tf(*files), "lacks the array")


def test_storage_in_another_file_is_not_read(files, tmp_path):
    secret_file(tmp_path)

    def put(file: h5py.File) -> None:
        outside = [(str(tmp_path / "secret.bin"), 0, 96)]
        file.create_dataset(f"{CELL}/B", (24,), dtype="f4", external=outside)

    put_in_place(files[0], f"{CELL}/B", put)
    assert_refused(lambda: read_bilm_tf(*files), "stored in another file")


def test_a_virtual_dataset_is_not_read(files, tmp_path):
    secret = secret_file(tmp_path)

    def put(file: h5py.File) -> None:
        layout = h5py.VirtualLayout((24,), dtype="f4")
        layout[:] = h5py.VirtualSource(str(secret), "B", shape=(24,))
        file.create_virtual_dataset(f"{CELL}/B", layout)

    put_in_place(files[0], f"{CELL}/B", put)
    assert_refused(lambda: read_bilm_tf(*files), "stored in another file")


def test_groups_that_contain_each_other_do_no_harm(files):
    def put(file: h5py.File) -> None:
        file["RNN_0"] = file["/"]

    put_in_place(files[0], "RNN_0", put)
    assert_refused(lambda: read_bilm_tf(*files), "lacks the array")


@pytest.mark.parametrize(
    "value",
    [
        np.arange(24),
        np.zeros(24, "S4"),
        np.zeros(24, [("a", "f4")]),
        np.zeros(24, bool),
        np.zeros(24, complex),
        np.zeros((24, 1), "f4"),
        np.zeros(23, "f4"),
        np.float32(1),
        h5py.Empty("f4"),
        "text",
    ],
    ids=lambda value: type(value).__name__ + str(getattr(value, "dtype", "")),
)
def test_an_array_of_another_kind_is_refused(value, files):
    def put(file: h5py.File) -> None:
        file[f"{CELL}/B"] = value

    put_in_place(files[0], f"{CELL}/B", put)
    assert_refused(lambda: read_bilm_tf(*files), f"{CELL}/B")


@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
def test_float_numbers_of_any_kind_are_read(dtype, files):
    expected = peer_files.read_all_arrays(files[0])[f"{CELL}/B"].astype(dtype).astype(np.float32)

    def put(file: h5py.File) -> None:
        file.create_dataset(f"{CELL}/B", data=expected.astype(dtype), chunks=(5,), compression=9)

    put_in_place(files[0], f"{CELL}/B", put)
    bias = read_bilm_tf(*files).bilm.forward_lm[0].bias.detach().numpy().reshape(4, -1)
    assert np.array_equal(bias[[0, 2, 1, 3]].ravel(), expected)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_that_are_not_finite_in_float32_are_refused(number, files):
    def put(file: h5py.File) -> None:
        file[f"{CELL}/B"] = np.full(24, number)

    put_in_place(files[0], f"{CELL}/B", put)
    assert_refused(lambda: read_bilm_tf(*files), "not finite")


# Sizes that were only declared; all in one process, whose peak memory is measured.


def huge_arrays(folder: Path) -> None:
    """Every array of a network of a million cells, none of them stored."""
    options = make_options(lstm={"dim": 10**6, "projection_dim": 10**6}, n_highway=0)
    with h5py.File(folder / "w.hdf5", "w") as file:
        small = make_arrays(make_options(n_highway=0))
        for name, array in small.items():
            if not name.startswith(("RNN", "CNN_proj")):
                file[name] = array
        file.create_dataset("CNN_proj/W_proj", (7, 10**6), "f4")
        file.create_dataset("CNN_proj/b_proj", (10**6,), "f4")
        for direction in (0, 1):
            for layer in (0, 1):
                cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
                file.create_dataset(f"{cell}/W_0", (2 * 10**6, 4 * 10**6), "f4")
                file.create_dataset(f"{cell}/B", (4 * 10**6,), "f4")
    (folder / "options.json").write_text(json.dumps(options))


def huge_chunks(folder: Path) -> None:
    """An array of 24 numbers in a chunk that unpacks to 80 MB."""
    path, _ = peer_files.write_bilm_tf_files(folder, make_options(), make_arrays(make_options()))
    with h5py.File(path, "r+") as file:
        del file[f"{CELL}/B"]
        chunk = 2 * 10**7
        bias = file.create_dataset(
            f"{CELL}/B", (24,), "f4", maxshape=(None,), chunks=(chunk,), compression=9
        )
        bias.id.write_direct_chunk((0,), zlib.compress(bytes(4 * chunk), 1))


def one_array_many_times(folder: Path) -> None:
    """A hundred layers that are all the same two megabytes."""
    options = make_options(lstm={"n_layers": 100, "dim": 256, "projection_dim": 256}, n_highway=0)
    arrays = {
        name: array
        for name, array in make_arrays(
            make_options(lstm={"n_layers": 1, "dim": 256, "projection_dim": 256}, n_highway=0)
        ).items()
        if "RNN_1" not in name
    }
    path, _ = peer_files.write_bilm_tf_files(folder, options, arrays)
    with h5py.File(path, "r+") as file:
        cell = file["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"]
        for direction in (0, 1):
            for layer in range(100):
                for name in ("W_0", "B"):
                    place = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/{name}"
                    if place not in file:
                        file[place] = cell[name]


def huge_options(number: int) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        paths = peer_files.write_bilm_tf_files(folder, make_options(), make_arrays(make_options()))
        options = make_options(lstm={"dim": number, "projection_dim": number})
        paths[1].write_text(json.dumps(options))

    return write


def huge_settings(**changes: Any) -> Callable[[Path], None]:
    """A model folder whose settings and whose header both speak of a giant."""

    def write(folder: Path) -> None:
        tiny.model().save_pretrained(folder)
        settings = json.loads((folder / "config.json").read_text())
        for section, values in changes.items():
            settings[section] |= values
        (folder / "config.json").write_text(json.dumps(settings))
        content = (folder / "model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
        header["forward_lm.0.input_weight"]["shape"] = [2**22, 2**20]
        text = json.dumps(header).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)

    return write


def endless_header(folder: Path) -> None:
    tiny.model().save_pretrained(folder)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**63) + b"{}")


def long_header(folder: Path) -> None:
    """A header of half a million weights, all of them empty."""
    tiny.model().save_pretrained(folder)
    entry = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    text = ("{" + ",".join(entry % number for number in range(500_000)) + "}").encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)


def huge_json(folder: Path) -> None:
    tiny.model().save_pretrained(folder)
    with (folder / "config.json").open("wb") as file:
        file.truncate(100_000_000)


def write_pickles(folder: Path, write: Callable[[Path], None]) -> None:
    architecture = peer_files.make_architecture()
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(folder, architecture, *weights)
    write(folder / "token_embedder.pkl")


def stretched_view(*, is_zip: bool) -> Callable[[Path], None]:
    view = torch.zeros(1).expand(10**6, 10**6)

    def write(path: Path) -> None:
        name = "word_emb_layer.embedding.weight"
        torch.save({name: view}, path, _use_new_zipfile_serialization=is_zip)

    return lambda folder: write_pickles(folder, write)


def many_views(folder: Path) -> None:
    """A thousand weights that are all the same megabyte of half floats."""

    def write(path: Path) -> None:
        weight = torch.zeros(1000, 500, dtype=torch.float16)
        torch.save({f"convolutions.{i}.weight": weight for i in range(1000)}, path)

    write_pickles(folder, write)


def declared_storage(number: bytes, *, is_zip: bool) -> Callable[[Path], None]:
    """A storage of 1000 numbers that says it has more."""

    def write(path: Path) -> None:
        tensors = {"projection.bias": torch.zeros(1000)}
        torch.save(tensors, path, _use_new_zipfile_serialization=is_zip)
        if not is_zip:
            path.write_bytes(path.read_bytes().replace(b"M\xe8\x03", number))
            return
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content.replace(b"M\xe8\x03", number))

    return lambda folder: write_pickles(folder, write)


def zip_bomb(folder: Path) -> None:
    def write(path: Path) -> None:
        torch.save({"projection.bias": torch.zeros(2)}, path)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content + bytes(100_000_000 if "data" in name else 0))

    write_pickles(folder, write)


def large_object(folder: Path) -> None:
    """`bytearray(2**31 - 1)`, a call that torch's own list of harmless ones has."""
    content = b"\x80\x02}X\x01\x00\x00\x00acbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85Rs."

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", content)
            archive.writestr("archive/version", "3\n")

    write_pickles(folder, write)


MILLION_MILLION = b"\x8a\x06" + (10**12).to_bytes(6, "little")
TWO_BILLION = b"J\xff\xff\xff\x7f"
HUGE: dict[str, Callable[[Path], None]] = {
    "arrays": huge_arrays,
    "chunks": huge_chunks,
    "one array many times": one_array_many_times,
    "options of 10**6": huge_options(10**6),
    "options of 10**12": huge_options(10**12),
    "options of 10**30": huge_options(10**30),
    "settings": huge_settings(lstm={"cell_dim": 2**20, "output_dim": 2**20, "num_layers": 100}),
    "settings of 10**30": huge_settings(lstm={"cell_dim": 10**30}),
    "filters": huge_settings(characters={"max_chars": 10_000, "filters": [[10_000, 2**20]] * 100}),
    "header": huge_settings(),
    "header of 2**63 bytes": endless_header,
    "header of many weights": long_header,
    "JSON of 100 MB": huge_json,
    "stretched view": stretched_view(is_zip=True),
    "stretched view, torch 0.4": stretched_view(is_zip=False),
    "many views": many_views,
    "declared 10**12": declared_storage(MILLION_MILLION, is_zip=True),
    "declared 10**12, torch 0.4": declared_storage(MILLION_MILLION, is_zip=False),
    "declared 2**31": declared_storage(TWO_BILLION, is_zip=True),
    "declared 2**31, torch 0.4": declared_storage(TWO_BILLION, is_zip=False),
    "zip bomb": zip_bomb,
    "large object": large_object,
}
LOAD_ALL = """
import resource, sys
from elmore.errors import ElmoreError
from elmore.weights.loading import load_model
from tests import tiny
from pathlib import Path
tiny.model().save_pretrained(sys.argv[1] + "/whole")
load_model(sys.argv[1] + "/whole")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for folder in sorted(Path(sys.argv[1]).iterdir()):
    try:
        load_model(folder)
        print("loaded", folder.name)
    except ElmoreError as error:
        assert len(str(error)) < 800, error
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    if grown > 32:
        print(folder.name, "took", grown, "MB")
        before += grown * 1024
"""


def test_sizes_that_are_only_declared_take_no_memory(tmp_path):
    for name, write in HUGE.items():
        (tmp_path / name).mkdir()
        write(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", LOAD_ALL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])},
    )
    assert (done.returncode, done.stdout) == (0, "loaded whole\n"), done.stderr[-2000:]


# JSON.

BOMBS = {
    "nested lists": b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000,
    "nested and closed": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a long number": b'{"a": ' + b"9" * 5_000 + b"}",
    "a number of 20 digits": b'{"a": ' + b"9" * 20 + b"}",
    "not a number": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
    "not UTF-8": b'{"a": "\xff"}',
    "UTF-16 of half a character": b"\xff\xfe{",
    "a list": b"[]",
    "nothing": b"",
    "null": b"null",
    "cut": b'{"a": ',
    "no string for a key": b"{1: 2}",
    "too large": b" " * (1 << 20) + b"{}",
}


@pytest.mark.parametrize("content", BOMBS.values(), ids=BOMBS)
def test_json_that_is_no_settings_is_refused(content, tmp_path):
    (tmp_path / "config.json").write_bytes(content)
    assert_refused(lambda: read_json(tmp_path / "config.json"), r"config\.json")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/proc/self/mem", "/tmp"])
def test_what_is_no_plain_file_is_not_read(path):
    if Path(path).exists():
        assert_refused(lambda: read_json(Path(path)))


# Code in pickles.


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


def test_refusals_are_errors_of_elmore():
    assert issubclass(ModelError, ElmoreError)
    assert_refused(lambda: load_model("./no/such/model"))

"""Sizes that are only declared: refused before memory is taken, in files of every kind."""

import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest
import torch

from elmore.errors import ElmoreError, ModelError
from elmore.weights.loading import load_model
from tests import tiny
from tests.weights import peer_files
from tests.weights.peer_files import make_arrays, make_options
from tests.weights.refusals import assert_refused

CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"


# All in one process, whose peak memory is measured.


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


def large_object(member: str) -> Callable[[Path], None]:
    """`bytearray(2**31 - 1)`, a call that torch's own list of harmless ones has."""
    content = b"\x80\x02}X\x01\x00\x00\x00acbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85Rs."

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"archive/{member}", content)
            archive.writestr("archive/version", "3\n")

    return lambda folder: write_pickles(folder, write)


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
    "large object": large_object("data.pkl"),
    "large object under a name that torch takes for the same": large_object("DATA.PKL"),
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


@pytest.mark.slow
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


def test_refusals_are_errors_of_elmore():
    assert issubclass(ModelError, ElmoreError)
    assert_refused(lambda: load_model("./no/such/model"))

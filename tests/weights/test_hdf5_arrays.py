"""HDF5 made to harm: arrays that are elsewhere, or nowhere, are not read."""

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmore.weights import bilm_tf_arrays, hdf5_arrays
from elmore.weights.bilm_tf import read_bilm_tf
from tests.weights import peer_files
from tests.weights.peer_files import make_arrays, make_options
from tests.weights.refusals import assert_refused

CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"


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


def test_each_part_of_an_array_is_read_when_it_is_taken(tmp_path, monkeypatch):
    """So that not all weights of a file are in memory beside those of the network."""
    path = tmp_path / "weights.hdf5"
    arrays = {name: np.random.rand(5, 2).astype(np.float32) for name in "abc"}
    hdf5_arrays.write_arrays(path, arrays)
    taken = []
    read = hdf5_arrays._read
    monkeypatch.setattr(
        hdf5_arrays, "_read", lambda *arguments: taken.append(arguments[1]) or read(*arguments)
    )
    with hdf5_arrays.open_hdf5(path) as file:
        found = hdf5_arrays.find_arrays(file, dict.fromkeys("abc", (5, 2)))
        assert (taken, list(found), found["b"].shape) == ([], ["a", "b", "c"], (5, 2))
        for rows in (slice(None), slice(1, 3), slice(4, 9)):
            np.testing.assert_array_equal(found["b"][rows], arrays["b"][rows])
    assert set(taken) == {"b"}


def test_only_errors_of_hdf5_are_said_to_be_damage(tmp_path):
    hdf5_arrays.write_arrays(tmp_path / "weights.hdf5", {"a": np.zeros(3, np.float32)})
    with pytest.raises(MemoryError), hdf5_arrays.open_hdf5(tmp_path / "weights.hdf5"):
        raise MemoryError  # such as by packing weights


@pytest.mark.parametrize("chunks", [None, (2, 3), (7, 24)])
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_how_many_numbers_are_read_at_once_does_not_matter(chunks, at_once, files, monkeypatch):
    name = f"{CELL}/W_0"
    expected, both = read_bilm_tf(*files), peer_files.read_all_arrays(files[0])[name]
    monkeypatch.setattr(bilm_tf_arrays, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(bilm_tf_arrays, "COLUMNS_AT_ONCE", at_once)

    def put(file: h5py.File) -> None:
        file.create_dataset(name, data=both, chunks=chunks)

    put_in_place(files[0], name, put)
    assert read_bilm_tf(*files).fingerprint() == expected.fingerprint()


@pytest.mark.parametrize("position", [0, 70_000, 99_999])
def test_numbers_that_are_not_finite_are_found_anywhere(position):
    array = np.ones((10, 10_000), np.float32)
    assert hdf5_arrays.is_finite(array)
    array.reshape(-1)[position] = np.inf
    assert not hdf5_arrays.is_finite(array)

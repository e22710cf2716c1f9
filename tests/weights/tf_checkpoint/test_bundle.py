"""TensorFlow's checkpoints are read as TensorFlow wrote them, and damaged ones are refused."""

import random
import shutil

import h5py
import numpy as np
import pytest

from elmore.errors import ModelError
from elmore.weights.tf_checkpoint.bundle import VariableFiles
from elmore.weights.tf_checkpoint.prefix import find_prefix
from elmore.weights.tf_checkpoint.slice_key import encode_slice
from elmore.weights.tf_checkpoint.sorted_table import read_table
from tests.weights.refusals import assert_refused
from tests.weights.tf_checkpoint import tables
from tests.weights.tf_checkpoint.tables import FIXTURE, make_table

WHOLE, PARTITIONED = FIXTURE / "whole", FIXTURE / "partitioned"
INDEX, DATA = "model.ckpt-2.index", "model.ckpt-2.data-00000-of-00001"
SHAPES = {"lm/softmax/W": (12, 8), "lm/softmax/b": (12,)}


def read(folder, shapes=None):
    return VariableFiles(find_prefix(folder)).read(SHAPES if shapes is None else shapes)


def test_variables_are_those_that_tensorflow_dumped():
    with h5py.File(WHOLE / "weights.hdf5") as file:
        dumped = {
            "lm/char_embed": file["char_embed"][...],
            "lm/CNN/W_cnn_1": file["CNN/W_cnn_1"][...],
            "lm/RNN_1/rnn/multi_rnn_cell/cell_1/lstm_cell/kernel": file[
                "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_0"
            ][...],
        }
    found = read(WHOLE, {name: array.shape for name, array in dumped.items()})
    for name, array in dumped.items():
        assert found[name].tobytes() == array.tobytes(), name


def test_slices_are_put_together():
    whole, partitioned = read(WHOLE), read(PARTITIONED)
    assert {name: array.tobytes() for name, array in whole.items()} == {
        name: array.tobytes() for name, array in partitioned.items()
    }


def test_a_compressed_index_is_read(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    shutil.copytree(WHOLE, tmp_path / "run")
    index = tmp_path / "run" / INDEX
    entries = read_table(index.read_bytes())
    assert len(entries) == 64
    packed = make_table(
        entries, compress=lambda block: pyarrow.compress(block, codec="snappy", asbytes=True)
    )
    assert len(packed) < len(make_table(entries))
    index.write_bytes(packed)
    assert read(tmp_path / "run")["lm/softmax/W"].tobytes() == read(WHOLE)["lm/softmax/W"].tobytes()


def test_keys_of_slices_are_those_of_tensorflow():
    # Written by TensorFlow 2.15 for a variable of 20,000 x 130 in two parts.
    expected = "007600010102e02710e0271080c082"
    assert encode_slice("v", [(10_000, 10_000), (0, 130)]).hex() == expected


@pytest.mark.parametrize("given", ["", INDEX, DATA, "model.ckpt-2", "model.ckpt-2.meta"])
def test_any_file_of_a_checkpoint_stands_for_it(given, tmp_path):
    shutil.copytree(WHOLE, tmp_path / "run")
    (tmp_path / "run" / "model.ckpt-2.meta").touch()
    assert find_prefix(tmp_path / "run" / given) == tmp_path / "run" / "model.ckpt-2"


def test_the_newest_of_several_is_the_one_that_the_folder_names(tmp_path):
    shutil.copytree(WHOLE, tmp_path / "run")
    shutil.copy(tmp_path / "run" / INDEX, tmp_path / "run" / "model.ckpt-1.index")
    assert find_prefix(tmp_path / "run") == tmp_path / "run" / "model.ckpt-2"
    (tmp_path / "run" / "checkpoint").unlink()
    assert find_prefix(tmp_path / "run") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", [INDEX, DATA])
def test_every_changed_byte_is_noticed(name, tmp_path):
    folder = shutil.copytree(WHOLE, tmp_path / "run")
    shapes = {
        variable.decode(): entry.shape
        for variable, entry in VariableFiles(find_prefix(WHOLE))._variables.items()
    }
    whole = (folder / name).read_bytes()
    for seed in range(40):
        chance = random.Random(seed)
        damaged = bytearray(whole)
        # The footer is padded, and the block for filters is not read.
        damaged[chance.randrange(len(whole) - 70)] ^= 1 << chance.randrange(8)
        (folder / name).write_bytes(damaged)
        assert_refused(lambda: read(folder, shapes), "not a complete TensorFlow checkpoint")


@pytest.mark.parametrize("name", [INDEX, DATA])
def test_every_truncation_is_noticed(name, tmp_path):
    folder = shutil.copytree(WHOLE, tmp_path / "run")
    whole = (folder / name).read_bytes()
    for seed in range(20):
        (folder / name).write_bytes(whole[: random.Random(seed).randrange(len(whole))])
        assert_refused(lambda: read(folder, {"train_perplexity": ()} | SHAPES), "checkpoint|lacks")


def test_a_missing_data_file_is_named(tmp_path):
    folder = shutil.copytree(PARTITIONED, tmp_path / "run")
    (folder / "model.ckpt-2.data-00001-of-00002").unlink()
    assert_refused(lambda: read(folder), "data-00001-of-00002")


def write(folder, entries, data=b""):
    (folder / "a.index").write_bytes(make_table({b"": tables.make_header(), **entries}))
    (folder / "a.data-00000-of-00001").write_bytes(data)
    return folder


ONES = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        (tables.make_entry(ONES, offset=0, dtype=2), "not in single precision"),
        (tables.make_entry(ONES, offset=0, shape=(3, 2)), r"has shape \(3, 2\), expected \(2, 3\)"),
        (tables.make_entry(ONES, offset=1), "truncated"),
        (tables.make_entry(ONES, offset=1 << 60), "truncated"),
        (tables.make_entry(ONES[0], offset=0, shape=(2, 3)), "wrong size"),
        (tables.make_entry(ONES * 2, offset=0), "checksum"),
        (tables.make_entry(ONES, offset=0) + tables.field(3, 7), "data file that does not exist"),
        (tables.make_entry(ONES, offset=0) + tables.field(7, b""), "another number of dim"),
        (b"\xff" * 30, "not a complete"),
    ],
)
def test_hostile_entries_are_refused(entry, match, tmp_path):
    folder = write(tmp_path, {b"v": entry}, ONES.tobytes())
    assert_refused(lambda: read(folder, {"v": (2, 3)}), match)


def test_infinite_numbers_are_refused(tmp_path):
    array = np.array([1.0, np.inf], np.float32)
    write(tmp_path, {b"v": tables.make_entry(array, offset=0)}, array.tobytes())
    assert_refused(lambda: read(tmp_path, {"v": (2,)}), "not finite")


def test_variables_cannot_share_bytes_without_end(tmp_path):
    entries = {f"v{n}".encode(): tables.make_entry(ONES, offset=0) for n in range(9)}
    write(tmp_path, entries, ONES.tobytes())
    shapes = {name.decode(): (2, 3) for name in entries}
    assert_refused(lambda: read(tmp_path, shapes), "more than its files")


@pytest.mark.parametrize(
    ("header", "match"),
    [
        (tables.make_header(num_data_files=0), "0 data files"),
        (tables.make_header(num_data_files=1 << 40), "data files"),
        (tables.make_header(is_big_endian=True), "big-endian"),
    ],
)
def test_headers_are_checked(header, match, tmp_path):
    (tmp_path / "a.index").write_bytes(make_table({b"": header}))
    assert_refused(lambda: VariableFiles(tmp_path / "a"), match)


def test_overlapping_blocks_are_refused():
    block = tables.make_block([(b"a", b"")])
    handle = tables.varint(0) + tables.varint(len(block))
    table = tables.finish_block(block, kind=0)
    index = tables.make_block([(b"a", handle), (b"b", handle)])
    footer = tables.varint(0) + tables.varint(0)
    footer += tables.varint(len(table)) + tables.varint(len(index))
    table += tables.finish_block(index, kind=0) + footer.ljust(40, b"\0") + tables.MAGIC
    with pytest.raises(ValueError, match="overlap"):
        read_table(table)


def test_an_index_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "a.index").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(ModelError, match="at most"):
        VariableFiles(tmp_path / "a")

import itertools
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore import extras
from elmore.embed import vector_file
from elmore.embed.vector_file import (
    FORMATS,
    SentenceVectors,
    VectorHeader,
    check_vector_path,
    read_header,
    read_vectors,
    write_vector_file,
)
from elmore.errors import DataError, ElmoreError, MissingExtraError
from elmore.files.atomic import hold_lock

SUFFIXES = [suffix for suffix in FORMATS if suffix != ".hdf5"]  # which is .h5

# Half of the characters are those that some format cannot store, or that escaping uses itself.
characters = st.sampled_from("\0\t\n\r\\ e0tu\x85\u2028\ud83d\ude00\udfff") | st.characters(
    exclude_categories=()
)
tokens = st.text(characters, max_size=5)
sentences_of_tokens = st.lists(st.lists(tokens, max_size=4), max_size=5)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def make_header(*, dtype="float32", num_layers=None, vector_dim=3) -> VectorHeader:
    return VectorHeader(
        model="tiny",
        model_hash="0123",
        state="reset",
        layers="all" if num_layers else "average",
        dtype=dtype,
        num_layers=num_layers,
        vector_dim=vector_dim,
    )


def make_sentences(all_tokens: list[list[str]], *, header: VectorHeader) -> list[SentenceVectors]:
    """Random float32 vectors, whatever dtype the file is to have."""
    random = np.random.default_rng(seed=0)
    return [
        SentenceVectors(
            tokens=tokens,
            vectors=random.standard_normal(header.vectors_shape(len(tokens)), np.float32),
        )
        for tokens in all_tokens
    ]


def assert_equal(found: list[SentenceVectors], sentences: list[SentenceVectors], *, dtype: str):
    assert [sentence.tokens for sentence in found] == [sentence.tokens for sentence in sentences]
    for ours, theirs in zip(found, sentences, strict=True):
        expected = theirs.vectors.astype(dtype)
        assert (ours.vectors.dtype, ours.vectors.shape) == (expected.dtype, expected.shape)
        assert ours.vectors.tobytes() == expected.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=30, deadline=None)
@given(
    all_tokens=sentences_of_tokens,
    dtype=st.sampled_from(["float32", "float16"]),
    num_layers=st.sampled_from([None, 1, 2]),
    compress=st.booleans(),
)
def test_any_text_comes_back_as_it_was(suffix, all_tokens, dtype, num_layers, compress):
    header = make_header(dtype=dtype, num_layers=num_layers)
    sentences = make_sentences(all_tokens, header=header)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"vectors{suffix}"
        write_vector_file(path, iter(sentences), header=header, compress=compress)
        assert_equal(list(read_vectors(path)), sentences, dtype=dtype)
        assert read_header(path) == header


@pytest.mark.parametrize(
    ("suffix", "dtype", "num_layers", "compress"),
    list(itertools.product([*SUFFIXES, ".hdf5"], ["float32", "float16"], [None, 3], [False, True])),
)
def test_every_kind_of_file_keeps_order_and_bits(tmp_path, suffix, dtype, num_layers, compress):
    header = make_header(dtype=dtype, num_layers=num_layers, vector_dim=16)
    all_tokens = [[f"{number}", "same"] * (number % 3) for number in range(25)]
    sentences = make_sentences(all_tokens, header=header)
    path = tmp_path / f"vectors{suffix}"
    write_vector_file(path, sentences, header=header, compress=compress)
    assert_equal(list(read_vectors(path)), sentences, dtype=dtype)
    assert read_header(path) == header
    assert names_in(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_kind_of_file_keeps_lines(tmp_path, suffix):
    header = make_header()
    all_tokens = [[], ["a", "b"], ["c"], [], [], ["d"], []]
    lines = [1, 2, 2, 3, None, 2**40, 2**40 + 1]
    sentences = [
        replace(sentence, line=line)
        for sentence, line in zip(make_sentences(all_tokens, header=header), lines, strict=True)
    ]
    path = tmp_path / f"vectors{suffix}"
    write_vector_file(path, sentences, header=header)
    assert [sentence.line for sentence in read_vectors(path)] == lines


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_from_before_kernels_were_recorded_are_read(tmp_path, suffix, monkeypatch):
    header = make_header()
    sentences = make_sentences([["a", "b"], []], header=header)
    path = tmp_path / f"vectors{suffix}"

    def old_json(self, **more):
        entries = {"format": 1, **asdict(self), **more}
        return json.dumps({name: entries[name] for name in entries if name != "kernel"})

    with monkeypatch.context() as patch:
        patch.setattr(VectorHeader, "to_json", old_json)
        write_vector_file(path, sentences, header=header)
    assert_equal(list(read_vectors(path)), sentences, dtype="float32")
    assert read_header(path).kernel is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_compressed_files_are_smaller(tmp_path, suffix):
    header = make_header(vector_dim=256)
    sentences = [SentenceVectors(tokens=["a"] * 50, vectors=np.ones((50, 256), np.float32))]
    sizes = []
    for compress in (False, True):
        path = tmp_path / f"{compress}{suffix}"
        write_vector_file(path, sentences, header=header, compress=compress)
        sizes.append(path.stat().st_size)
    assert sizes[1] < sizes[0] / 2


def test_numbers_are_rounded_to_float16_by_the_writer(tmp_path):
    path = tmp_path / "vectors.h5"
    vectors = np.array([[1.0001, 0.5, -3.0]])
    sentence = SentenceVectors(tokens=["a"], vectors=vectors)
    write_vector_file(path, [sentence], header=make_header(dtype="float16"))
    (found,) = read_vectors(path)
    assert found.vectors.tolist() == [[1.0, 0.5, -3.0]]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_number_too_large_for_float16_is_refused(tmp_path, suffix):
    sentence = SentenceVectors(tokens=["a"], vectors=np.array([[1.0, 70_000.0, 0.0]], np.float32))
    path = tmp_path / f"vectors{suffix}"
    with pytest.raises(DataError, match="sentence 0 has values too large for float16"):
        write_vector_file(path, [sentence], header=make_header(dtype="float16"))
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_write_leaves_the_old_file(tmp_path, suffix):
    path = tmp_path / f"vectors{suffix}"
    header = make_header()
    write_vector_file(path, make_sentences([["old"]], header=header), header=header)
    before = path.read_bytes()

    def break_off():
        yield from make_sentences([["new"]] * 20, header=header)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_vector_file(path, break_off(), header=header)
    assert path.read_bytes() == before
    assert names_in(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_disk_is_waited_for_now_and_then(tmp_path, suffix, monkeypatch):
    header = make_header()
    sentences = make_sentences([["a"]] * 10, header=header)  # of 12 bytes
    flushed = []
    monkeypatch.setattr(vector_file, "flush_to_disk", flushed.append)
    for name, flush_bytes in (("whole", None), ("often", 12), ("thrice", 36), ("late", 121)):
        write_vector_file(
            tmp_path / f"{name}{suffix}", sentences, header=header, flush_bytes=flush_bytes
        )
        assert len(flushed) == {"whole": 0, "often": 10, "thrice": 3, "late": 0}[name]
        assert set(flushed) <= {tmp_path / f".{name}{suffix}.tmp"}
        flushed.clear()
        found = (tmp_path / f"{name}{suffix}").read_bytes()
        assert found == (tmp_path / f"whole{suffix}").read_bytes()


def test_a_wrong_shape_is_named_with_the_right_one(tmp_path):
    sentence = SentenceVectors(tokens=["a", "b"], vectors=np.zeros((1, 3), np.float32))
    with pytest.raises(DataError, match=r"shape \(1, 3\); its 2 tokens .* \(2, 3\)"):
        write_vector_file(tmp_path / "vectors.npz", [sentence], header=make_header())


def test_what_a_killed_writer_left_is_overwritten(tmp_path):
    (tmp_path / ".vectors.npz.tmp").write_text("left over")
    write_vector_file(tmp_path / "vectors.npz", [], header=make_header())
    assert names_in(tmp_path) == ["vectors.npz"]


def test_two_writers_of_one_file_do_not_mix(tmp_path):
    release = hold_lock(tmp_path / ".vectors.h5.tmp")
    with pytest.raises(DataError, match="another process"):
        write_vector_file(tmp_path / "vectors.h5", [], header=make_header())
    release()
    write_vector_file(tmp_path / "vectors.h5", [], header=make_header())


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "large_disk").mkdir()
    link = tmp_path / "vectors.npz"
    link.symlink_to(tmp_path / "large_disk" / "vectors.npz")
    write_vector_file(link, [], header=make_header())
    assert link.is_symlink()
    assert list(read_vectors(link)) == []


def test_an_unknown_suffix_names_the_known_ones(tmp_path):
    for use in (check_vector_path, lambda path: write_vector_file(path, [], header=make_header())):
        with pytest.raises(DataError, match=r"'.txt'; choose one of .h5, .hdf5, .parquet, .npz"):
            use(tmp_path / "vectors.txt")


def test_a_folder_is_refused_before_the_work(tmp_path):
    (tmp_path / "vectors.h5").mkdir()
    with pytest.raises(DataError, match="it is a folder"):
        check_vector_path(tmp_path / "vectors.h5")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_missing_permission_is_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="permission denied; choose another folder"):
        write_vector_file(tmp_path / "vectors.h5", [], header=make_header())


def test_a_missing_folder_is_made(tmp_path):
    path = tmp_path / "missing" / "vectors.h5"
    write_vector_file(path, [], header=make_header())
    assert list(read_vectors(path)) == []


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"there is no file .*vectors\.h5"):
        read_vectors(tmp_path / "vectors.h5")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("num_bytes", [0, 100, 1000])
def test_a_damaged_file_is_one_sentence(tmp_path, suffix, num_bytes):
    path = tmp_path / f"vectors{suffix}"
    header = make_header()
    write_vector_file(path, make_sentences([["a"]] * 9, header=header), header=header)
    path.write_bytes(path.read_bytes()[:num_bytes])
    with pytest.raises(DataError, match="damaged or not a vector file"):
        list(read_vectors(path))
    with pytest.raises(DataError, match="damaged or not a vector file"):
        read_header(path)


def test_a_header_of_a_newer_format_asks_for_an_update():
    text = make_header().to_json().replace('"format": 1', '"format": 2')
    with pytest.raises(DataError, match=r"format 2, .* update elmore"):
        VectorHeader.from_json(text)


def test_a_missing_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(extras, "_find_version", lambda _: None)
    for name in ("parquet_vectors", "token_rows"):
        monkeypatch.delitem(sys.modules, f"elmore.embed.{name}", raising=False)
    with pytest.raises(MissingExtraError, match=r"a table of .*elmore\[parquet\]"):
        check_vector_path(tmp_path / "vectors.parquet")
    monkeypatch.setattr(extras, "_find_version", lambda _: "9.0")
    with pytest.raises(ElmoreError, match=r"^pyarrow 9\.0 is installed, but .* needs pyarrow>="):
        check_vector_path(tmp_path / "vectors.parquet")


def run_python(script: str, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.slow
def test_no_format_is_imported_before_it_is_used():
    script = "import elmore.embed.vector_file, sys; print({'h5py', 'pyarrow'} & set(sys.modules))"
    assert run_python(script).stdout == "set()\n"


WITHOUT_PANDAS = """
import sys
import numpy as np
from elmore.embed.vector_file import SentenceVectors, VectorHeader, write_vector_file

header = VectorHeader(model="", model_hash="", state="", layers="", dtype="float32",
                      num_layers=None, vector_dim=2)
sentence = SentenceVectors(tokens=["a"], vectors=np.ones((1, 2), np.float32), key="b", source="c")
write_vector_file(sys.argv[1], [sentence], header=header)
print("pandas" in sys.modules)
"""


@pytest.mark.slow
def test_no_format_takes_the_time_to_import_pandas(tmp_path):
    for suffix in SUFFIXES:
        assert run_python(WITHOUT_PANDAS, tmp_path / f"out{suffix}").stdout == "False\n"


# A limit on the size of files fails like a full disk, and needs no disk.
FULL_DISK = """
import resource, sys
from pathlib import Path
import numpy as np
from elmore.embed.vector_file import SentenceVectors, VectorHeader, write_vector_file
from elmore.errors import DataError

header = VectorHeader(model="", model_hash="", state="", layers="", dtype="float32",
                      num_layers=None, vector_dim=64)
sentence = SentenceVectors(tokens=["a"] * 100, vectors=np.ones((100, 64), np.float32))
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
for suffix in (".h5", ".parquet", ".npz"):
    for num_sentences in (39, 200):  # full at the end, full on the way
        try:
            write_vector_file(Path(sys.argv[1]) / f"out{suffix}", [sentence] * num_sentences,
                              header=header)
        except DataError as error:
            print(error)
"""


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_for_each_format_and_leaves_nothing(tmp_path):
    result = run_python(FULL_DISK, tmp_path)
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert len(lines) == 6
    assert all("cannot write" in line and "File too large" in line for line in lines)
    assert names_in(tmp_path) == []


FLAT_MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np
from elmore.embed.vector_file import SentenceVectors, VectorHeader, read_vectors, write_vector_file

header = VectorHeader(model="", model_hash="", state="", layers="", dtype="float32",
                      num_layers=2, vector_dim=512)

def write_and_read(path, num_sentences):
    sentences = (
        SentenceVectors(tokens=["a"] * 50, vectors=np.full((2, 50, 512), number, np.float32))
        for number in range(num_sentences)
    )
    write_vector_file(path, sentences, header=header)
    assert sum(1 for _ in read_vectors(path)) == num_sentences
    path.unlink()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

path = Path(sys.argv[1])
print(write_and_read(path, 100), write_and_read(path, 700))
"""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_memory_does_not_grow_with_the_file(tmp_path, suffix):
    small, large = map(int, run_python(FLAT_MEMORY, tmp_path / f"out{suffix}").stdout.split())
    unit = 1 if sys.platform == "darwin" else 1024
    assert (large - small) * unit < 60e6  # the larger file has 120 MB more

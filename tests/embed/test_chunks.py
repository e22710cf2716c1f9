import hashlib
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmore.embed import chunks
from elmore.embed.chunks import ChunkFolder, digest_tokens
from elmore.embed.vector_file import SentenceVectors, VectorHeader, read_vectors, write_vector_file
from elmore.errors import DataError

JOB = {"model": "tiny", "layers": "all"}


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def make_sentence(number: int) -> SentenceVectors:
    tokens = [f"token\t{number}\0"] * (number % 4)
    return SentenceVectors(tokens=tokens, vectors=np.full((2, len(tokens), 3), number, "float32"))


def make_sentences(start: int, end: int) -> list[SentenceVectors]:
    return [make_sentence(number) for number in range(start, end)]


def digest_all(sentences: list[SentenceVectors]) -> str:
    digest = ""
    for sentence in sentences:
        digest = digest_tokens(digest, sentence.tokens)
    return digest


def assert_holds(folder: ChunkFolder, expected: list[SentenceVectors]) -> None:
    found = list(folder)
    assert folder.num_sentences == len(expected)
    assert folder.digest == digest_all(expected)
    assert [sentence.tokens for sentence in found] == [sentence.tokens for sentence in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.vectors.dtype == theirs.vectors.dtype
        assert np.array_equal(ours.vectors, theirs.vectors)


def test_what_was_added_is_there_when_opened_again(tmp_path):
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        assert_holds(folder, [])
        folder.add(make_sentences(0, 5))
        folder.add([])
        folder.add(make_sentences(5, 7))
        assert_holds(folder, make_sentences(0, 7))
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        assert_holds(folder, make_sentences(0, 7))
        folder.add(make_sentences(7, 9))
        assert_holds(folder, make_sentences(0, 9))


def test_chunks_keep_their_order_past_ten(tmp_path):
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        for number in range(12):
            folder.add([make_sentence(number)])
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        assert_holds(folder, make_sentences(0, 12))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_mixed_vectors_keep_their_dtype(tmp_path, dtype):
    sentence = SentenceVectors(tokens=["a", "b"], vectors=np.array([[1, 2], [3, 4]], dtype))
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        folder.add([sentence, sentence])
        assert_holds(folder, [sentence, sentence])


def test_the_state_is_that_of_the_last_chunk(tmp_path):
    hidden = np.arange(6, dtype=np.float32).reshape(2, 3)
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        assert folder.state is None
        folder.add(make_sentences(0, 1), state={"hidden": hidden})
        folder.add(make_sentences(1, 2), state={"cell/0\t": hidden + 1, "step": np.array(3)})
        hidden += 100
    for _ in range(2):
        assert folder.state is not None
        assert list(folder.state) == ["cell/0\t", "step"]
        assert folder.state["cell/0\t"].tolist() == [[1, 2, 3], [4, 5, 6]]
        assert folder.state["step"] == 3
        with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
            pass


def test_a_chunk_without_state_forgets_the_earlier_one(tmp_path):
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        folder.add(make_sentences(0, 1), state={"hidden": np.zeros(2)})
        folder.add(make_sentences(1, 2))
        assert folder.state is None
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        assert folder.state is None


def test_the_saved_state_does_not_follow_the_callers_array(tmp_path):
    hidden = np.zeros(2)
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        folder.add(make_sentences(0, 1), state={"hidden": hidden})
        hidden += 1
        assert folder.state is not None
        assert folder.state["hidden"].tolist() == [0.0, 0.0]


def test_another_job_is_refused_and_the_difference_named(tmp_path):
    ChunkFolder(tmp_path / "out.partial", job={**JOB, "sizes": (1, 2)}).close()
    ChunkFolder(tmp_path / "out.partial", job={**JOB, "sizes": [1, 2]}).close()
    with pytest.raises(DataError) as caught:
        ChunkFolder(tmp_path / "out.partial", job={**JOB, "model": "large"})
    message = str(caught.value)
    assert "model was 'tiny' and is now 'large'" in message
    assert "sizes was [1, 2] and is now None" in message
    assert "layers" not in message
    assert "--restart" in message


def test_a_refused_job_does_not_keep_the_folder_locked(tmp_path):
    ChunkFolder(tmp_path / "out.partial", job=JOB).close()
    with pytest.raises(DataError) as caught:
        ChunkFolder(tmp_path / "out.partial", job={})
    ChunkFolder(tmp_path / "out.partial", job=JOB).close()
    assert caught.value is not None  # its traceback still holds the refused folder


def test_a_second_process_is_refused_while_the_first_works(tmp_path):
    first = ChunkFolder(tmp_path / "out.partial", job=JOB)
    with pytest.raises(DataError, match="another process is working on"):
        ChunkFolder(tmp_path / "out.partial", job=JOB)
    first.close()
    ChunkFolder(tmp_path / "out.partial", job=JOB).close()


def test_a_folder_that_is_forgotten_is_free_again(tmp_path):
    folder = ChunkFolder(tmp_path / "out.partial", job=JOB)
    del folder
    ChunkFolder(tmp_path / "out.partial", job=JOB).close()


def test_a_folder_of_the_user_is_not_touched(tmp_path):
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "thesis.npz").write_text("mine")
    with pytest.raises(DataError, match="not a folder of chunks"):
        ChunkFolder(tmp_path / "out.partial", job=JOB)
    assert names_in(tmp_path / "out.partial") == ["thesis.npz"]


def test_a_file_in_the_way_is_one_sentence(tmp_path):
    (tmp_path / "out.partial").write_text("mine")
    with pytest.raises(DataError, match=r"out\.partial is a file, not a folder of chunks"):
        ChunkFolder(tmp_path / "out.partial", job=JOB)


def test_removing_leaves_nothing(tmp_path):
    folder = ChunkFolder(tmp_path / "out.partial", job=JOB)
    folder.add(make_sentences(0, 3))
    folder.remove()
    assert names_in(tmp_path) == []


def test_leftovers_of_a_killed_process_are_cleaned(tmp_path):
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        folder.add(make_sentences(0, 3))
    leftover = tmp_path / "out.partial" / ".00000001.npz.tmp"
    leftover.write_text("half a chunk")
    half_removed = tmp_path / ".out.partial.removing"
    half_removed.mkdir()
    (half_removed / "job.json").touch()
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        assert_holds(folder, make_sentences(0, 3))
    assert not leftover.exists()
    assert not half_removed.exists()


def add_three_chunks(path: Path) -> None:
    with ChunkFolder(path, job=JOB) as folder:
        for start in (0, 3, 6):
            folder.add(make_sentences(start, start + 3), state={"last": np.array(start)})


@pytest.mark.parametrize("num_bytes", [0, 1, 300, -1])
def test_a_truncated_chunk_is_dropped_with_all_after_it(tmp_path, num_bytes):
    add_three_chunks(tmp_path / "out.partial")
    damaged = tmp_path / "out.partial" / "00000001.npz"
    damaged.write_bytes(damaged.read_bytes()[:num_bytes])
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        assert_holds(folder, make_sentences(0, 3))
        assert folder.state is not None
        assert folder.state["last"] == 0
        folder.add(make_sentences(3, 9))
        assert_holds(folder, make_sentences(0, 9))


def test_a_missing_chunk_drops_all_after_it(tmp_path):
    add_three_chunks(tmp_path / "out.partial")
    (tmp_path / "out.partial" / "00000000.npz").unlink()
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        assert_holds(folder, [])


@pytest.mark.slow
def test_no_changed_byte_reaches_the_result(tmp_path):
    add_three_chunks(tmp_path / "out.partial")
    damaged = tmp_path / "out.partial" / "00000002.npz"
    content = damaged.read_bytes()
    positions = random.Random(0).sample(range(len(content)), k=300)
    num_dropped = 0
    for position in positions:
        changed = bytearray(content)
        changed[position] ^= 0x41
        damaged.write_bytes(changed)
        with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
            num_dropped += folder.num_sentences == 6
            # Some bytes of a zip, such as dates, mean nothing; then the chunk is still whole.
            assert_holds(folder, make_sentences(0, folder.num_sentences))
            assert folder.num_sentences in (6, 9)
    assert num_dropped > 50


def test_a_chunk_that_may_not_be_read_is_not_dropped(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    add_three_chunks(tmp_path / "out.partial")
    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZipFile", refuse)
        with pytest.raises(DataError, match="permission denied"):
            ChunkFolder(tmp_path / "out.partial", job=JOB)
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        assert_holds(folder, make_sentences(0, 9))


def test_damage_after_opening_is_one_sentence_with_the_remedy(tmp_path):
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        folder.add(make_sentences(0, 3))
        path = tmp_path / "out.partial" / "00000000.npz"
        path.write_bytes(path.read_bytes()[:-5])
        with pytest.raises(DataError, match="run the same command again"):
            list(folder)


def test_a_failed_add_changes_nothing(tmp_path, monkeypatch):
    def fill_disk(file, arrays):
        file.write(b"half a chunk")
        raise OSError(28, "No space left on device")

    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        folder.add(make_sentences(0, 3))
        with monkeypatch.context() as patch:
            patch.setattr(chunks, "_write_joined", fill_disk)
            with pytest.raises(DataError, match="the disk or your quota is full"):
                folder.add(make_sentences(3, 6))
        assert_holds(folder, make_sentences(0, 3))
        folder.add(make_sentences(3, 6))
        assert_holds(folder, make_sentences(0, 6))


def test_one_chunk_at_a_time_is_in_memory(tmp_path):
    vectors = np.zeros((100, 1000), np.float32)
    header = VectorHeader(
        model="",
        model_hash="",
        state="",
        layers="",
        dtype="float32",
        num_layers=None,
        vector_dim=1000,
    )
    with ChunkFolder(tmp_path / "out.partial", job=JOB) as folder:
        for _ in range(10):  # chunks of 4 MB
            folder.add([SentenceVectors(tokens=["a"] * 100, vectors=vectors)] * 10)
        tracemalloc.start()
        write_vector_file(tmp_path / "out.npz", folder, header=header)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 7e6


tokens = st.lists(
    st.text(st.characters(exclude_categories=()) | st.sampled_from("1:\n"), max_size=3)
)


@pytest.mark.slow
@given(one=st.lists(tokens, max_size=3), two=st.lists(tokens, max_size=3))
def test_other_sentences_have_another_digest(one, two):
    digests = []
    for sentences in (one, two):
        digest = ""
        for sentence in sentences:
            digest = digest_tokens(digest, sentence)
        digests.append(digest)
    assert (digests[0] == digests[1]) == (one == two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (["ab"], ["a", "b"]),
        (["a", "b"], ["a1:b"]),
        (["a:", "b"], ["a", ":b"]),
        ([], [""]),
        (["\ud83d\ude00"], ["\U0001f600"]),
    ],
)
def test_other_cuts_have_another_digest(one, two):
    assert digest_tokens("", one) != digest_tokens("", two)


@pytest.mark.parametrize(
    ("tokens", "content"),
    [
        ([], b"before\n"),
        (["ab", "", "c"], b"before\n2:ab0:1:c"),
        (["a\n", "é"], b"before\n2:a\n2:\xc3\xa9"),
        (["\ud83d"], b"before\n3:\xed\xa0\xbd"),
    ],
)
def test_a_digest_is_that_of_the_tokens_in_utf8_with_their_lengths(tokens, content):
    assert digest_tokens("before", tokens) == hashlib.sha256(content).hexdigest()


def test_where_a_sentence_ends_matters_to_the_digest():
    assert digest_tokens(digest_tokens("", ["a"]), ["b"]) != digest_tokens("", ["a", "b"])
    assert digest_tokens(digest_tokens("", ["a"]), []) != digest_tokens("", ["a"])


# What a long job does, in a process that can be killed.
WORK = """
import os, signal, sys
from pathlib import Path
import numpy as np
from elmore.embed.chunks import ChunkFolder
from elmore.embed.vector_file import SentenceVectors, VectorHeader, write_vector_file

def work(out, num_sentences, chunk_size):
    header = VectorHeader(model="", model_hash="", state="", layers="", dtype="float32",
                          num_layers=None, vector_dim=8)
    folder = ChunkFolder(Path(f"{out}.partial"), job={"model": "tiny"})
    total = folder.state["total"] if folder.state else np.zeros(())
    while folder.num_sentences < num_sentences:
        sentences = []
        for number in range(folder.num_sentences, folder.num_sentences + chunk_size):
            total = total + number  # carried from sentence to sentence, as an LSTM's state is
            vectors = np.full((number % 5, 8), total, np.float32)
            sentences.append(SentenceVectors(tokens=[str(number)] * len(vectors), vectors=vectors))
        folder.add(sentences, state={"total": total})
    write_vector_file(out, folder, header=header)
    folder.remove()

"""
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(sys.path),
    "OPENBLAS_NUM_THREADS": "1",
}


def assert_worked(out: Path, *, num_sentences: int) -> None:
    assert names_in(out.parent) == [out.name]
    found = list(read_vectors(out))
    assert len(found) == num_sentences
    for number, sentence in enumerate(found):
        assert sentence.tokens == [str(number)] * (number % 5)
        assert (sentence.vectors == number * (number + 1) // 2).all()


@pytest.mark.slow
def test_a_job_killed_at_random_moments_ends_with_the_same_content(tmp_path):
    out = tmp_path / "out.h5"
    script = WORK + "print('ready', flush=True); work(Path(sys.argv[1]), 400, 20)"
    moments = random.Random(1)
    num_killed = 0
    for attempt in range(7):
        with subprocess.Popen(
            [sys.executable, "-c", script, str(out)], env=ENVIRONMENT, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            if attempt < 6:
                time.sleep(moments.uniform(0.005, 0.05))
                process.kill()
            num_killed += process.wait() == -signal.SIGKILL
        if not (tmp_path / "out.h5.partial").exists() and out.exists():
            break
    assert num_killed > 0
    assert_worked(out, num_sentences=400)


# Each file or folder opened, renamed or removed is a moment to be killed at; fork, because a new
# interpreter for each moment would take a minute. SIGKILL loses nothing that fsync would save.
KILL_AT_EACH_STEP = (
    WORK
    + """
os.fsync = lambda descriptor: None

def work_until(out, last_step):
    step = 0
    def count(event, arguments):
        nonlocal step
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"):
            step += 1
            if step == last_step:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)
    work(out, 9, 3)

def in_child(function, *arguments):
    child = os.fork()
    if child == 0:
        try:
            function(*arguments)
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

last_step = 0
status = None
while status != 0:
    last_step += 1
    folder = Path(sys.argv[1]) / str(last_step)
    folder.mkdir()
    out = folder / "out.npz"
    status = in_child(work_until, out, last_step)
    assert status in (0, -signal.SIGKILL), status
    if out.exists() and Path(f"{out}.partial").exists():
        # Whole, so that nothing is computed again only to be removed.
        assert len(list(Path(f"{out}.partial").glob("*.npz"))) == 3, last_step
    if status != 0 and (not out.exists() or Path(f"{out}.partial").exists()):
        assert in_child(work, out, 9, 3) == 0, last_step
print(last_step)
"""
)


@pytest.mark.slow
def test_a_job_killed_at_each_step_ends_with_the_same_content(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", KILL_AT_EACH_STEP, str(tmp_path)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    num_steps = int(result.stdout)
    assert num_steps > 30
    for step in range(1, num_steps + 1):
        folder = tmp_path / str(step)
        contents = [sentence.tokens for sentence in read_vectors(folder / "out.npz")]
        assert contents == [[str(number)] * (number % 5) for number in range(9)]
        # Killed while removing, the job is done but for a hidden remainder.
        assert set(names_in(folder)) <= {"out.npz", ".out.npz.partial.removing"}

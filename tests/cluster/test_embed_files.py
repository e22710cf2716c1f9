"""Many files in several processes: the same bits as one process, whatever is killed."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import elmore
from elmore.cluster.local import run_locally
from elmore.cluster.progress import WorkerProgress
from elmore.errors import ElmoreError
from tests.cluster.clusters import contents, write_texts, write_wanted
from tests.tiny import TRAINED_MODEL


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("cluster") / "texts")


@pytest.fixture(scope="module")
def wanted(texts, tmp_path_factory):
    """What one process writes."""
    return write_wanted(texts, tmp_path_factory.mktemp("wanted") / "v")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_processes_write_the_same_bytes(tmp_path, texts, wanted, workers):
    seen = []
    report = elmore.embed_files(
        TRAINED_MODEL,
        texts,
        tmp_path / "v",
        shard_bytes=4000,
        workers=workers,
        on_progress=lambda done: seen.append((done.done_shards, done.done_bytes, done.num_tokens)),
    )
    assert contents(tmp_path / "v") == wanted
    assert seen == sorted(seen)
    size = sum(path.stat().st_size for path in texts.iterdir())
    assert seen[-1] == (report.num_parts, size, report.num_tokens)


def start(texts, out, *more):
    return subprocess.Popen(
        [sys.executable, "-m", "elmore", "embed", str(texts), "--out", str(out), "--model",
         str(TRAINED_MODEL), "--shard-bytes", "4000", "--workers", "2", *more],
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def find_workers(process):
    children = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(process.pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    return [int(line.split()[0]) for line in children if "spawn_main" in line]


@pytest.mark.slow
def test_kills_of_driver_and_workers_cost_nothing_but_time(tmp_path, texts, wanted):
    moments = random.Random(0)
    out = tmp_path / "v"
    kills = {"driver": 0, "worker": 0}
    for attempt in range(12):
        process = start(texts, out)
        if attempt < 6:
            while process.poll() is None and not list(out.glob("part-*.parquet")):
                time.sleep(0.02)
            time.sleep(moments.random() * 0.5)
            victims = find_workers(process)
            if attempt % 2 and victims:
                os.kill(moments.choice(victims), signal.SIGKILL)
                kills["worker"] += 1
            elif process.poll() is None:
                process.kill()
                kills["driver"] += 1
        _, errors = process.communicate(timeout=300)
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        if attempt >= 6 and process.returncode == 0:
            break
    assert contents(out) == wanted
    assert not (out / ".attempts").exists()
    assert kills["driver"] >= 1


@pytest.mark.slow
def test_shares_of_several_jobs_complete_each_other(tmp_path, texts, wanted):
    jobs = [start(texts, tmp_path / "v", "--shard", f"{n}/3") for n in (1, 2, 3)]
    statuses = [job.communicate(timeout=300) and job.returncode for job in jobs]
    assert statuses == [0, 0, 0]
    elmore.embed_files(TRAINED_MODEL, texts, tmp_path / "v", shard_bytes=4000, workers=1)
    assert contents(tmp_path / "v") == wanted


@pytest.mark.slow
def test_a_shard_that_ends_its_workers_is_bad(tmp_path, monkeypatch):
    (tmp_path / "t.txt").write_text("He left.\n")
    job = elmore.plan_files(TRAINED_MODEL, tmp_path / "t.txt", tmp_path / "v")
    job.worker.pickled_embedder = KILLER
    run_locally(job, job.shards, num_workers=2, progress=WorkerProgress(job.shards, None))
    ((_, reason),) = job.finish().bad.items()
    assert "5 worker processes ended while they embedded it (the last with status -9)" in reason


# Unpickling it ends the process, as a process without memory is ended.
KILLER = b"cos\nkill\n(cos\ngetpid\n(tRI9\ntR."


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"engine": "spark"}, "engine is 'spark'; choose one of: local, ray"),
        ({"workers": 0}, "workers is 0"),
        ({"share": "0/3"}, "give i/n with i from 1 to n"),
        ({"share": "two"}, "give i/n"),
        ({"address": "auto"}, "address is for the engine ray"),
        ({"file_format": "csv"}, "the format of parts is 'csv'"),
        ({"dtype": "int8", "file_format": "h5"}, "write a .parquet file"),
    ],
)
def test_mistakes_are_one_sentence_and_nothing_is_written(tmp_path, options, complaint):
    (tmp_path / "t.txt").write_text("He left.\n")
    with pytest.raises(ElmoreError, match=complaint):
        elmore.embed_files(TRAINED_MODEL, tmp_path / "t.txt", tmp_path / "v", **options)
    assert not (tmp_path / "v").exists()

"""Engine `ray` writes the bytes of one process, whatever is killed; run by `make test-cluster`."""

import os
import signal
import subprocess
import sys
import time

import pytest

import elmore
from elmore.errors import ElmoreError
from tests.cluster.clusters import (
    contents,
    in_namespace,
    needs_namespaces,
    write_texts,
    write_wanted,
)
from tests.tiny import TRAINED_MODEL

ray = pytest.importorskip("ray", reason="needs elmore[ray]")
pytestmark = [pytest.mark.slow, needs_namespaces]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("ray") / "texts")


@pytest.fixture(scope="module")
def wanted(texts, tmp_path_factory):
    return write_wanted(texts, tmp_path_factory.mktemp("wanted") / "v")


def start(texts, out, *more):
    return subprocess.Popen(
        in_namespace(
            sys.executable, "-m", "elmore", "embed", texts, "--out", out, "--model",
            TRAINED_MODEL, "--shard-bytes", "4000", "--engine", "ray", "--workers", "2", *more,
        ),
        stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def finish(process):
    try:
        _, errors = process.communicate(timeout=240)
    finally:
        os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
    return process.returncode, errors.decode()


def test_ray_writes_the_same_bytes(tmp_path, texts, wanted):
    status, errors = finish(start(texts, tmp_path / "v"))
    assert status == 0, errors
    assert contents(tmp_path / "v") == wanted


def test_bad_text_is_listed(tmp_path):
    (tmp_path / "t.txt").write_bytes(b"A caf\xe9.\n")
    status, errors = finish(start(tmp_path / "t.txt", tmp_path / "v"))
    assert status == 1
    assert "not embedded: part-00000-" in errors


def test_killed_actors_are_replaced_in_the_same_run(tmp_path):
    """Every actor is killed once, while it embeds a shard."""
    texts = write_texts(tmp_path / "texts", num_lines=4000)
    out = tmp_path / "v"
    process = start(texts, out, "--shard-bytes", 40_000)
    killed = []
    while process.poll() is None and len(killed) < 2:
        for actor in find_actors(process.pid, doing=".submit"):
            if len(killed) < 2 and actor not in killed:
                os.kill(actor, signal.SIGKILL)
                killed.append(actor)
        time.sleep(0.02)
    status, errors = finish(process)
    assert status == 0, errors
    assert len(killed) == 2
    job = elmore.plan_files(TRAINED_MODEL, texts, tmp_path / "wanted", shard_bytes=40_000)
    for shard in job.find_pending():
        job.run(shard)
    job.finish()
    assert contents(out) == contents(tmp_path / "wanted")
    assert not (out / ".attempts").exists()


def test_killed_drivers_cost_nothing_but_time(tmp_path, texts, wanted):
    out = tmp_path / "v"
    process = start(texts, out)
    while process.poll() is None and not list(out.glob("part-*.parquet")):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    finish(process)
    assert not (out / "manifest.json").exists()
    status, errors = finish(start(texts, out))
    assert status == 0, errors
    assert contents(out) == wanted


def find_actors(process_id, *, doing=""):
    """Return Ray's actors among the descendants of a process, by the method that they run."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rows = [line.split(maxsplit=2) for line in listed]
    family = {process_id}
    for _ in range(8):
        family |= {int(row[0]) for row in rows if int(row[1]) in family}
    return [
        int(row[0])
        for row in rows
        if int(row[0]) in family and "ray::MapWorker(" in row[2] and doing in row[2]
    ]


def test_an_existing_cluster_is_used(tmp_path, texts, wanted):
    program = f"""
import ray, subprocess, sys
ray.init(num_cpus=2, _node_ip_address="127.0.0.1", include_dashboard=False)
address = ray.get_runtime_context().gcs_address
sys.exit(subprocess.run([
    sys.executable, "-m", "elmore", "embed", {str(texts)!r}, "--out", {str(tmp_path / "v")!r},
    "--model", {str(TRAINED_MODEL)!r}, "--shard-bytes", "4000", "--engine", "ray",
    "--address", address]).returncode)
"""
    done = subprocess.run(
        in_namespace(sys.executable, "-c", program), capture_output=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert contents(tmp_path / "v") == wanted


def test_ray_listens_on_loopback_only(tmp_path, texts):
    program = f"""
import subprocess, elmore
def look(_):
    if not seen:
        seen.append(subprocess.run(["ss", "-Hltn"], capture_output=True, text=True).stdout)
seen = []
elmore.embed_files({str(TRAINED_MODEL)!r}, {str(texts)!r}, {str(tmp_path / "v")!r},
                   engine="ray", workers=1, shard_bytes=4000, on_progress=look)
print(seen[0])
"""
    done = subprocess.run(
        in_namespace(sys.executable, "-c", program),
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listening = [line.split()[3] for line in done.stdout.splitlines() if "LISTEN" in line]
    assert listening
    outside = [
        address
        for address in listening
        if not address.startswith(("127.", "[::1]", "[::ffff:127."))
    ]
    assert outside == []


def test_map_batches_of_ray_data(tmp_path):
    program = f"""
import numpy as np, ray, elmore
ray.init(num_cpus=2, _node_ip_address="127.0.0.1", include_dashboard=False, log_to_driver=False)
texts = [f"The bank number {{n}}." for n in range(20)]
rows = ray.data.from_items([{{"text": text}} for text in texts])
embed = elmore.ArrowEmbedder({str(TRAINED_MODEL)!r}, pool="mean", threads=1)
for batch_format in ("numpy", "pandas", "pyarrow"):
    found = rows.map_batches(embed, batch_format=batch_format, batch_size=7).take_all()
    vectors = {{row["text"]: np.asarray(row["vector"], np.float32) for row in found}}
    wanted = elmore.load({str(TRAINED_MODEL)!r}).sentence_vectors(texts)
    for text, vector in zip(texts, wanted):
        assert vectors[text].tobytes() == vector.tobytes(), batch_format
print("same")
"""
    done = subprocess.run(
        in_namespace(sys.executable, "-c", program),
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert "same" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("127.0.0.1:1", "there is no Ray at 127.0.0.1:1"),
        ("ray://127.0.0.1:1", "there is no Ray at ray://127.0.0.1:1"),
        ("auto", "cannot use Ray at auto"),
    ],
)
def test_a_wrong_address_is_one_sentence(tmp_path, address, complaint):
    (tmp_path / "t.txt").write_text("He left.\n")
    status, errors = finish(start(tmp_path / "t.txt", tmp_path / "v", "--address", address))
    assert status == 2
    *notes, last = errors.splitlines()
    assert all(note.startswith("note:") for note in notes)
    assert last.startswith(f"elmore: {complaint}")
    assert last.endswith("check --address, or start a cluster with: ray start --head")


def test_without_ray_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "t.txt").write_text("He left.\n")
    with pytest.raises(ElmoreError, match=r"pip install 'elmore\[ray\]'"):
        elmore.embed_files(TRAINED_MODEL, tmp_path / "t.txt", tmp_path / "v", engine="ray")

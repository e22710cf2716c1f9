"""Text and vectors in Google Cloud Storage, with an emulator on loopback; `make test-cluster`."""

import contextlib
import socket
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

import elmore
from elmore.errors import ElmoreError
from tests.cluster.clusters import write_texts
from tests.tiny import TRAINED_MODEL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("gcsfs") is None or find_spec("gcp_storage_emulator") is None,
        reason="needs elmore[gcs] and gcp-storage-emulator",
    ),
]


@pytest.fixture(scope="module")
def server():
    """The address of a server with the interface of Google Cloud Storage."""
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gcp_storage_emulator", "start", "--in-memory"),
            *("--host", "127.0.0.1", "--port", str(port)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def bucket(server, monkeypatch):
    import gcsfs  # noqa: PLC0415  not in every environment

    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server)
    gcsfs.GCSFileSystem.clear_instance_cache()
    system = gcsfs.GCSFileSystem(token="anon")
    system.mkdir("words")
    yield system
    system.rm("words", recursive=True)
    gcsfs.GCSFileSystem.clear_instance_cache()


def test_a_job_in_gcs_resumes_and_has_the_vectors_of_a_local_one(tmp_path, bucket):
    texts = write_texts(tmp_path / "texts")
    for path in texts.iterdir():
        bucket.pipe_file(f"words/texts/{path.name}", path.read_bytes())
    how = {"shard_bytes": 4000, "pool": "mean"}
    job = elmore.plan_files(TRAINED_MODEL, "gs://words/texts/*.txt", "gs://words/v", **how)
    for shard in job.shards[:3]:
        job.run(shard)
    assert not job.finish().is_complete
    report = elmore.embed_files(
        TRAINED_MODEL, "gs://words/texts/", "gs://words/v", workers=1, **how
    )
    assert (report.is_complete, report.num_parts_before) == (True, 3)
    (tmp_path / "copy").mkdir()
    for name in bucket.ls("words/v"):
        (tmp_path / "copy" / name.rpartition("/")[2]).write_bytes(bucket.cat_file(name))
    elmore.embed_files(TRAINED_MODEL, texts, tmp_path / "local", workers=1, **how)
    found = list(elmore.read_vectors(tmp_path / "copy"))
    for one, other in zip(found, elmore.read_vectors(tmp_path / "local"), strict=True):
        assert one.vectors.tobytes() == other.vectors.tobytes()
    assert found[0].source == "gs://words/texts/0.txt"


def test_a_missing_bucket_is_one_sentence(bucket):
    with pytest.raises(ElmoreError, match=r"gs://nothing"):
        elmore.embed_files(TRAINED_MODEL, "gs://nothing/a.txt", "gs://words/v")

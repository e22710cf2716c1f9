"""Text and vectors in S3, with moto's server on loopback; run by `make test-cluster`."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

import elmore
from elmore.errors import ElmoreError
from tests.cluster.clusters import contents, write_texts
from tests.tiny import TRAINED_MODEL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("s3fs") is None or find_spec("moto") is None,
        reason="needs elmore[s3] and moto[server]",
    ),
]


@pytest.fixture(scope="module")
def server():
    """The address of a server with the interface of S3."""
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
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
    import s3fs  # noqa: PLC0415  not in every environment

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("words")
    yield system
    system.rm("words", recursive=True)


def test_a_job_in_s3_resumes_and_has_the_vectors_of_a_local_one(tmp_path, bucket):
    texts = write_texts(tmp_path / "texts")
    bucket.put(str(texts), "words/texts", recursive=True)
    how = {"shard_bytes": 4000, "pool": "mean"}
    job = elmore.plan_files(TRAINED_MODEL, "s3://words/texts/*.txt", "s3://words/v", **how)
    for shard in job.shards[:3]:
        job.run(shard)
    assert not job.finish().is_complete
    seen = []
    report = elmore.embed_files(
        TRAINED_MODEL,
        "s3://words/texts/",
        "s3://words/v",
        workers=2,
        on_progress=lambda done: seen.append(done.num_shards),
        **how,
    )
    assert report.is_complete
    assert report.num_parts_before == 3
    assert seen[0] == len(job.shards) - 3
    bucket.get("words/v", str(tmp_path / "copy"), recursive=True)
    local = elmore.embed_files(TRAINED_MODEL, texts, tmp_path / "local", workers=1, **how)
    assert local.num_sentences == report.num_sentences
    found = list(elmore.read_vectors(tmp_path / "copy"))
    for one, other in zip(found, elmore.read_vectors(tmp_path / "local"), strict=True):
        assert one.vectors.tobytes() == other.vectors.tobytes()
    assert found[0].source == "s3://words/texts/0.txt"
    assert not [name for name in contents(tmp_path / "copy") if name.startswith(".")]


def test_changed_objects_are_embedded_again(tmp_path, bucket):
    bucket.pipe_file("words/texts/a.txt", b"He left.\n")
    elmore.embed_files(TRAINED_MODEL, "s3://words/texts", "s3://words/v", workers=1)
    bucket.pipe_file("words/texts/a.txt", b"He went.\n")  # of the same size
    report = elmore.embed_files(TRAINED_MODEL, "s3://words/texts", "s3://words/v", workers=1)
    assert (report.num_parts, report.num_parts_before) == (1, 0)
    assert len(bucket.glob("words/v/*.parquet")) == 1


def test_a_missing_bucket_is_one_sentence(bucket):
    with pytest.raises(ElmoreError, match=r"s3://nothing"):
        elmore.embed_files(TRAINED_MODEL, "s3://nothing/a.txt", "s3://words/v")


def test_credentials_are_not_part_of_a_job(bucket):
    bucket.pipe_file("words/texts/a.txt", b"He left.\n")
    elmore.embed_files(TRAINED_MODEL, "s3://words/texts", "s3://words/v", workers=1)
    for name in bucket.glob("words/v/*.json"):
        assert os.environ["AWS_SECRET_ACCESS_KEY"].encode() not in bucket.cat_file(name)

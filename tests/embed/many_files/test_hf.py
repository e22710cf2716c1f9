"""Text on the Hugging Face hub, with a server on loopback that answers as the hub does."""

import gzip
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest

import elmore
from tests.tiny import TRAINED_MODEL

pytestmark = pytest.mark.slow
TEXT = "The old man sat by the river. It rained all day. He left.\n" * 40
FILES = {"texts/0.txt": TEXT.encode(), "texts/1.txt.gz": gzip.compress(TEXT.upper().encode())}
COMMIT = "a" * 40


class Hub(BaseHTTPRequestHandler):
    """A dataset `someone/words` with FILES, and nothing else."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        if re.fullmatch(r"/api/datasets/someone/words(/revision/main)?", path):
            return self.send({"id": "someone/words", "sha": COMMIT, "siblings": []})
        if match := re.fullmatch(r"/api/datasets/someone/words/tree/\w+/?(.*)", path):
            return self.send(list_folder(match[1]))
        if match := re.fullmatch(r"/datasets/someone/words/resolve/\w+/(.*)", path):
            return self.send_file(FILES.get(match[1]))
        return self.send({"error": "not found"}, status=404)

    do_HEAD = do_GET

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if not urlsplit(self.path).path.startswith("/api/datasets/someone/words/paths-info/"):
            return self.send({"error": "not found"}, status=404)
        paths = (
            json.loads(asked)["paths"]
            if asked.startswith("{")
            else re.findall("paths=([^&]+)", asked)
        )
        known = [entry for path in paths for entry in describe(unquote(path))]
        return self.send(known)

    def send(self, content, *, status=200):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_file(self, data):
        if data is None:
            return self.send({"error": "not found"}, status=404)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first = int(asked[1]) if asked else 0
        end = int(asked[2]) + 1 if asked and asked[2] else len(data)
        part = data[first:end]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(data)}")
        self.send_header("ETag", '"tag"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(part)
        return None

    def log_message(self, *_):
        pass


def describe(path):
    if path in FILES:
        return [{"type": "file", "path": path, "size": len(FILES[path]), "oid": "0" * 40}]
    if path.rstrip("/") == "texts":
        return [{"type": "directory", "path": "texts", "size": 0, "oid": "1" * 40}]
    return []


def list_folder(folder):
    paths = FILES if folder.rstrip("/") == "texts" else ["texts"]
    return [entry for path in paths for entry in describe(path)]


@pytest.fixture(scope="module")
def hub():
    """The address of the server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def embed(texts, out, *, hub):
    # In a process of its own, because huggingface_hub reads its endpoint when it is imported.
    return subprocess.run(
        [
            *(sys.executable, "-m", "elmore", "embed", str(texts), "--out", str(out)),
            *("--model", str(TRAINED_MODEL), "--pool", "mean", "--workers", "1"),
        ],
        env={**os.environ, "HF_ENDPOINT": hub, "HF_HUB_OFFLINE": "0", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_texts_on_the_hub_have_the_vectors_of_local_ones(tmp_path, hub):
    (tmp_path / "texts").mkdir()
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    done = embed("hf://datasets/someone/words/texts", tmp_path / "found", hub=hub)
    assert done.returncode == 0, done.stderr
    again = embed("hf://datasets/someone/words/texts/*", tmp_path / "found", hub=hub)
    assert "1 part (1 of them by an earlier run)" in again.stderr
    job = elmore.plan_files(TRAINED_MODEL, tmp_path / "texts", tmp_path / "wanted", pool="mean")
    job.run(job.shards[0])
    job.finish()
    found = list(elmore.read_vectors(tmp_path / "found"))
    assert found[0].source == "hf://datasets/someone/words/texts/0.txt"
    for one, other in zip(found, elmore.read_vectors(tmp_path / "wanted"), strict=True):
        assert one.vectors.tobytes() == other.vectors.tobytes()


def test_a_missing_dataset_is_one_sentence(tmp_path, hub):
    done = embed("hf://datasets/nobody/nothing/a.txt", tmp_path / "v", hub=hub)
    assert done.returncode == 2
    (complaint,) = [line for line in done.stderr.splitlines() if not line.startswith("note:")]
    assert complaint.startswith("elmore: ")
    assert "hf://datasets/nobody/nothing/a.txt" in complaint
    assert not (tmp_path / "v").exists()

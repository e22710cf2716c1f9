"""The process starts quickly, drains on SIGTERM and ends with status 0."""

import json
import signal
import socket
import sys
import threading
import time
import urllib.error
from pathlib import Path

import pytest

from elmore import ElmoreError
from elmore.serve.process import bind, find_address, is_loopback
from elmore.serve.settings import ServeSettings
from elmore.serve.start import _warn
from tests.serve.processes import serving


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("192.168.1.5", False), ("example.org", False)],
)  # fmt: skip
def test_only_loopback_is_private(host, expected):
    assert is_loopback(host) == expected


def test_the_default_address_is_loopback():
    assert is_loopback(ServeSettings().host)


def test_a_server_for_others_says_whether_it_has_a_key(capsys):
    _warn(ServeSettings(host="0.0.0.0"))
    assert "anyone who can reach it can use it; set an API key" in capsys.readouterr().err
    _warn(ServeSettings(host="0.0.0.0", api_key="k"))
    assert "requests need the API key" in capsys.readouterr().err


def test_a_port_in_use_is_one_sentence():
    with bind(ServeSettings(port=0)) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert find_address(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(ElmoreError, match=f"cannot listen on 127.0.0.1:{port} .*--port"):
            bind(ServeSettings(port=port))
    with pytest.raises(ElmoreError, match=r"cannot listen on no\.such\.host"):
        bind(ServeSettings(host="no.such.host.invalid"))


def read_priorities(process):
    """How nice each thread of a process is, the main thread first."""
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    stats = [(thread / "stat").read_text() for thread in sorted(threads, key=lambda p: int(p.name))]
    return [int(stat.rpartition(")")[2].split()[16]) for stat in stats]


@pytest.mark.slow
def test_a_server_answers_and_ends_with_status_0():
    with serving(OMP_NUM_THREADS="2") as server:
        assert server.line.startswith("elmore: serving tiny at http://127.0.0.1:")
        assert len(server.post("/embed", {"inputs": "a private text"})[0]) == 48
        if sys.platform == "linux":
            # What computes gives way to what answers: both lanes, and the thread that helps.
            main, *others = read_priorities(server.process)
            lowered = sorted(other - main for other in others if other > main)
            assert lowered == [1, 1, 6]
        status, log = server.stop()
    assert status == 0
    assert " POST /embed 200 " in log
    assert "private" not in log


@pytest.mark.slow
def test_accepted_requests_are_finished_after_sigterm():
    with serving("--no-access-log") as server:
        answers = []
        body = {"inputs": "word " * 9000, "layers": "top", "format": "base64"}
        sender = threading.Thread(target=lambda: answers.append(server.post("/layers", body)))
        sender.start()
        while 'elmore_queued_tokens{lane="long"} 9002.0' not in server.get("/metrics"):
            assert sender.is_alive(), "the request was answered before the server could be stopped"
            time.sleep(0.001)
        status, log = server.stop()
        sender.join()
    assert (status, log) == (0, "")
    assert answers[0]["sentences"][0]["shape"] == [9000, 48]


@pytest.mark.slow
def test_after_the_grace_period_the_server_ends_anyway():
    with serving("--no-access-log", "--grace-seconds", "1", "--max-request-tokens", "1000000",
                 "--max-queue-tokens", "1000000") as server:  # fmt: skip
        text = json.dumps({"inputs": ["the bank of the river ."] * 60_000}).encode()
        head = b"POST /score HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(head + b"content-length: %d\r\n\r\n" % len(text) + text)
            while 'elmore_queued_tokens{lane="long"} 4' not in server.get("/metrics"):
                time.sleep(0.01)
            began = time.monotonic()
            status, log = server.stop()
    assert status == 0
    assert time.monotonic() - began < 10
    assert "before all accepted requests were finished" in log


@pytest.mark.slow
def test_several_workers_share_the_port_and_their_counts():
    with serving("--workers", "2", "--no-access-log") as server:
        for _ in range(12):
            server.post("/embed", {"inputs": "a"})
        text = server.get("/metrics")
        assert 'elmore_requests_total{route="/embed",status="200"} 12.0' in text
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        numbers = children.read_text().split() if children.exists() else []
        status, log = server.stop()
    assert (status, log) == (0, "")
    deadline = time.monotonic() + 10
    while any(is_running(number) for number in numbers):
        assert time.monotonic() < deadline, "a worker outlived its server"
        time.sleep(0.05)


def is_running(process: str) -> bool:
    """Say whether a process exists and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_model_that_cannot_be_loaded_is_one_sentence(workers, tmp_path):
    with (
        pytest.raises(AssertionError) as failed,
        serving("--model", f"other={tmp_path}", "--workers", workers),
    ):
        pass
    assert "elmore: " in str(failed.value)
    assert "HDF5 files; give the folder" in str(failed.value)
    assert "Traceback" not in str(failed.value)


@pytest.mark.slow
def test_ctrl_c_also_ends_with_status_0():
    with serving("--no-access-log") as server:
        server.process.send_signal(signal.SIGINT)
        server.process.communicate(timeout=30)
        assert server.process.returncode == 0
        with pytest.raises(urllib.error.URLError):
            server.get("/health")

"""Real servers in processes of their own, on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.tiny import TRAINED_MODEL

ROOT = Path(__file__).parents[2]


class RunningServer:
    """`elmore serve` with the tiny model."""

    def __init__(self, *options: str, **variables: str) -> None:
        command = [sys.executable, "-m", "elmore", "serve", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--model", f"tiny={TRAINED_MODEL}", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables},
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        found = re.search(r"http://\S+?:(\d+)", self.line)
        assert found is not None, self.process.communicate()[1]
        self.url, self.port = found[0], int(found[1])

    def post(self, path: str, body: Any) -> Any:
        """Send a request and return its answer."""
        content = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), content)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def get(self, path: str) -> str:
        """Return the text of an answer."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read().decode()

    def stop(self) -> tuple[int, str]:
        """Stop it by SIGTERM; return its status and what it logged."""
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


@contextmanager
def serving(*options: str, **variables: str) -> Iterator[RunningServer]:
    """Run a server, and end it in any case."""
    server = RunningServer(*options, **variables)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()

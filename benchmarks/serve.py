"""Measure `elmore serve` with real HTTP clients in a process of their own.

    python -m benchmarks.serve [--seconds 5] [--only clients,long,overload,soak] [--soak-seconds 60]

`clients` compares a server that batches requests with one that does not, at 1 to 1,000 connections.
`long` measures short requests with and without an 8,000-word request at the same time. `overload`
sends five times what the server can do. `soak` asks for all routes, sends malformed bodies and
leaves before the answer, then stops the server. On a busy machine, compare the CPU time per
request. Prints JSON.
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

CONNECTIONS = (1, 16, 64, 256, 1000)
LONG_WORDS = 8_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--soak-seconds", type=float, default=60.0)
    parser.add_argument("--soak-connections", type=int, default=32)
    parser.add_argument("--only", default="clients,long,overload,soak")
    parser.add_argument("--connections", type=int, nargs="*", default=CONNECTIONS)
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    if "clients" in chosen:
        show("clients", compare_batching(arguments.connections, seconds=arguments.seconds))
    if "long" in chosen:
        show("long", measure_long(seconds=arguments.seconds))
    if "overload" in chosen:
        show("overload", measure_overload(seconds=arguments.seconds))
    if "soak" in chosen:
        show("soak", measure_soak(arguments.soak_connections, seconds=arguments.soak_seconds))


def show(name: str, result: object) -> None:
    print(json.dumps({name: result}, indent=1), flush=True)


class Server:
    """A running server, and what it says about itself."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "elmore", "serve", "--port", "0", "--no-access-log"]
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        self.seconds_to_start = time.perf_counter() - began
        self.port = int(re.search(r":(\d+) ", line)[1])

    def read_metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            text = answer.read().decode()
        return float(re.search(rf"^{name} (\S+)$", text, flags=re.MULTILINE)[1])

    @property
    def cpu_seconds(self) -> float:
        return self.read_metric("process_cpu_seconds_total")

    @property
    def megabytes(self) -> float:
        return round(self.read_metric("process_resident_memory_bytes") / 1e6, 1)

    def stop(self) -> dict[str, object]:
        """Stop it by SIGTERM; return how that went."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=60)
        return {
            "status": self.process.returncode,
            "seconds": round(time.perf_counter() - began, 1),
            "stderr": err[-2000:],
        }


@contextmanager
def serving(*options: str):
    server = Server(*options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def start_client(server: Server, *options: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "benchmarks.serve_client", str(server.port)]
    return subprocess.Popen([*command, *map(str, options)], stdout=subprocess.PIPE, text=True)


def run_client(server: Server, *options: object) -> dict[str, object]:
    """Run one client; return what it measured and the server's CPU time per request."""
    before = server.cpu_seconds
    client = start_client(server, *options)
    result = json.loads(client.communicate()[0])
    answered = sum(about["requests"] for about in result["by_status"].values())
    result["cpu_ms_per_request"] = round(1000 * (server.cpu_seconds - before) / answered, 2)
    return result


def compare_batching(connections: tuple[int, ...], *, seconds: float) -> list[dict[str, object]]:
    queue = ("--max-queue-tokens", "100000")  # refuse nothing at 1,000 connections
    with serving(*queue) as batched, serving(*queue, "--batch-tokens", "1") as unbatched:
        rows = []
        for server in (batched, unbatched):
            run_client(server, "--connections", 4, "--seconds", 2)  # fills the token cache
        for number in connections:
            row: dict[str, object] = {"connections": number}
            for name, server in (("batched", batched), ("unbatched", unbatched)):
                options = ("--connections", number, "--seconds", seconds)
                row[name] = run_client(server, *options)
            cpu = [row[name]["cpu_ms_per_request"] for name in ("unbatched", "batched")]
            row["requests_per_cpu_second_ratio"] = round(cpu[0] / cpu[1], 2)
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
        return rows


def measure_long(*, seconds: float, connections: int = 8) -> dict[str, object]:
    with serving() as server:
        options = ("--connections", connections, "--seconds", seconds)
        run_client(server, *options)
        without = run_client(server, *options)
        long_client = start_client(server, "--words", LONG_WORDS, "--seconds", 1.5 * seconds)
        time.sleep(2)  # until it sends
        during = run_client(server, *options)
        long_result = json.loads(long_client.communicate()[0])
        after = run_client(server, *options)
    p99 = [result["by_status"]["200"]["p99_ms"] for result in (without, after, during)]
    return {
        "without": without,
        "with_long": during,
        "without_again": after,
        "long": long_result,
        "p99_ratio": round(p99[2] / max(p99[:2]), 2),
    }


def measure_overload(*, seconds: float) -> dict[str, object]:
    with serving() as server:
        capacity = run_client(server, "--connections", 64, "--seconds", seconds)
        before = server.megabytes
        rate = 5 * capacity["requests_per_second"]
        result: dict[str, object] = {"capacity": capacity}
        megabytes = [before]
        for name in ("first", "second"):
            flood = start_client(server, "--rate", rate, "--seconds", 3 * seconds)
            time.sleep(1 + seconds / 2)  # until the queue is full
            # The flooding process is busy itself, so another one measures latencies.
            probe = run_client(server, "--rate", 20, "--seconds", 1.5 * seconds)
            del probe["cpu_ms_per_request"]  # also of the others' requests
            result[name] = {"probe": probe, "flood": json.loads(flood.communicate()[0])}
            megabytes.append(server.megabytes)
        return {**result, "megabytes": megabytes}


def measure_soak(connections: int, *, seconds: float) -> dict[str, object]:
    with serving() as server:
        result = {"seconds_to_start": round(server.seconds_to_start, 1)}
        megabytes = []
        parts = []
        for _ in range(4):
            options = ("--connections", connections, "--seconds", seconds / 4, "--rude")
            parts.append(run_client(server, *options))
            megabytes.append(server.megabytes)
        last = start_client(server, "--connections", 16, "--seconds", 4, "--rude")
        time.sleep(3)
        return {
            **result,
            "parts": parts,
            "megabytes": megabytes,
            "stop": server.stop(),
            "client_at_the_end": json.loads(last.communicate()[0]),
        }


if __name__ == "__main__":
    main()

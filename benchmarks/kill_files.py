"""Kill jobs over many files at random moments, and compare what they write with one process.

    python -m benchmarks.kill_files [--kills 70] [--engine local|ray] [--seed 0]

The engine local loses its driver or a worker, again and again; after every few kills the job is
finished and its bytes are compared with those of a single process. With --engine ray (in an
environment that has Ray, best in a network namespace), a cluster of three nodes on this machine
loses actors, whole nodes and drivers. Uses a small random model; prints one line per finished job.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import elmore
from elmore.config import CharacterConfig, LSTMConfig, ModelConfig
from elmore.weights.elmo_model import new_model

LINE = "The old man sat by the bank of the river {}. It rained all day. He left.\n"
SHARD_BYTES = 8000
MAX_KILLS_PER_JOB = 12


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_files")
    parser.add_argument("--kills", type=int, default=70)
    parser.add_argument("--engine", default="local", choices=["local", "ray"])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    kills: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = prepare(folder)
        cluster = Cluster() if arguments.engine == "ray" else None
        try:
            for number in range(10_000):
                if kills.total() >= arguments.kills:
                    break
                out = folder / f"v{number}"
                kill_job(folder, out, moments, kills, cluster, limit=arguments.kills)
                found = contents(out)
                print(
                    f"{dict(kills)}: {'the same bytes' if found == wanted else 'DIFFERENT'}",
                    flush=True,
                )
                if found != wanted:
                    sys.exit(1)
        finally:
            if cluster is not None:
                cluster.stop()
    print(f"{kills.total()} kills, all jobs complete, without duplicates and with the same bytes")


def prepare(folder: Path) -> dict[str, bytes]:
    """Write a model and texts; return what a single process writes."""
    config = ModelConfig(
        lstm=LSTMConfig(num_layers=2, cell_dim=256, output_dim=64),
        characters=CharacterConfig(embedding_dim=8, filters=((1, 16), (2, 32), (3, 64))),
    )
    new_model(config, seed=0).save_pretrained(folder / "model")
    (folder / "texts").mkdir()
    for number in range(6):
        lines = [LINE.format(number * 1000 + line) for line in range(300)]
        (folder / "texts" / f"{number}.txt").write_text("\n".join(lines))
    job = elmore.plan_files(
        str(folder / "model"), folder / "texts", folder / "wanted", shard_bytes=SHARD_BYTES
    )
    for shard in job.find_pending():
        job.run(shard)
    job.finish()
    return contents(folder / "wanted")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def kill_job(
    folder: Path,
    out: Path,
    moments: random.Random,
    kills: Counter[str],
    cluster: "Cluster | None",
    *,
    limit: int,
) -> None:
    """Run a job until it has finished, and kill some of its processes before."""
    num_kills = 0
    while not is_done(out):
        num_before = len(list(out.glob("part-*.parquet")))
        process = start(folder, out, cluster)
        deadline = time.monotonic() + 300
        while process.poll() is None:
            if time.monotonic() > deadline:
                sys.exit("a job hung")
            # Half of the runs are only killed once they have written a part.
            is_under_way = len(list(out.glob("part-*.parquet"))) > num_before or num_kills % 2
            if is_under_way and kills.total() < limit:
                time.sleep(moments.random())
                if num_kills < MAX_KILLS_PER_JOB and process.poll() is None:
                    kills[kill_something(process, moments, cluster)] += 1
                    num_kills += 1
            time.sleep(0.05)
        # 1: too many kills of the workers of one shard; the next run embeds it.
        if process.returncode not in (0, 1, -signal.SIGKILL) and cluster is None:
            sys.exit(f"a job ended with status {process.returncode}")
        if process.returncode == 1 and is_done(out):
            (out / "manifest.json").unlink()
        if cluster is not None:
            cluster.repair()


def is_done(out: Path) -> bool:
    return (out / "manifest.json").exists()


def start(folder: Path, out: Path, cluster: "Cluster | None") -> "subprocess.Popen[bytes]":
    command = [
        *(sys.executable, "-m", "elmore", "embed", folder / "texts", "--out", out),
        *("--model", folder / "model", "--shard-bytes", str(SHARD_BYTES), "--workers", "2"),
        *(() if cluster is None else ("--engine", "ray", "--address", cluster.address)),
    ]
    return subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def kill_something(
    process: "subprocess.Popen[bytes]", moments: random.Random, cluster: "Cluster | None"
) -> str:
    """Kill the driver, a worker or a node; return which."""
    victims = {"driver": [process.pid]}
    marker = "spawn_main" if cluster is None else "ray::MapWorker("
    workers = [
        number
        for number, parent, arguments in list_processes()
        if marker in arguments and (cluster is not None or parent == process.pid)
    ]
    if workers:
        victims["worker" if cluster is None else "actor"] = workers
    if cluster is not None and cluster.has_nodes and moments.random() < 0.4:
        cluster.kill_node(moments)
        return "node"
    kind = moments.choice(sorted(victims))
    try:
        os.kill(moments.choice(victims[kind]), signal.SIGKILL)
    except ProcessLookupError:
        return f"{kind} that had ended"
    return kind


def list_processes() -> list[tuple[int, int, str]]:
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    return [(int(row[0]), int(row[1]), row[2] if len(row) > 2 else "") for row in rows]


class Cluster:
    """Three nodes of Ray on this machine; two of them may be killed."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as RayCluster  # noqa: PLC0415  an extra

        settings: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 << 20}
        self._settings = settings
        self._cluster = RayCluster(initialize_head=True, head_node_args=settings)
        self._nodes = [self._cluster.add_node(**settings) for _ in range(2)]
        self.address = self._cluster.address

    @property
    def has_nodes(self) -> bool:
        """Whether there is a node left to kill."""
        return bool(self._nodes)

    def kill_node(self, moments: random.Random) -> None:
        """Kill all processes of a node."""
        node = self._nodes.pop(moments.randrange(len(self._nodes)))
        self._cluster.remove_node(node, allow_graceful=False)

    def repair(self) -> None:
        """Replace nodes that were killed."""
        while len(self._nodes) < 2:
            self._nodes.append(self._cluster.add_node(**self._settings))

    def stop(self) -> None:
        self._cluster.shutdown()


if __name__ == "__main__":
    main()

"""Engine `ray`: actors of Ray Data, each of which loads the model once and embeds shard by shard.

Rows are numbers of shards, and parts are written by the actors, not by Ray: so a retry, a lost node
or a rerun can never duplicate a row. An actor asks for half a CPU, because Ray Data waits forever
when its actors hold all of them.
"""

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from elmore import ElmoreError, FilesJob, MissingExtraError, TextShard
from elmore.cluster.progress import WorkerProgress

CPUS_PER_ACTOR = 0.5
CONNECT_SECONDS = 10.0


class _Actor:
    """Embeds the shards whose numbers it gets, one per row."""

    def __init__(self, worker: Any, shards: Any) -> None:
        self._worker = worker
        self._shards = shards

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        results: dict[str, list[Any]] = {"number": [], "tokens": [], "reason": [], "mistake": []}
        for number in batch["number"]:
            tokens = 0

            def count(new_tokens: int, _characters: int) -> None:
                nonlocal tokens
                tokens += new_tokens

            reason, mistake = "", ""
            try:
                reason = self._worker.try_run(self._shards[int(number)], on_tokens=count) or ""
            except ElmoreError as error:
                # Returned and not raised, because Ray would retry it.
                mistake = str(error)
            for name, value in zip(results, (int(number), tokens, reason, mistake), strict=True):
                results[name].append(value)
        return results


def run_on_ray(
    job: FilesJob,
    shards: Sequence[TextShard],
    *,
    num_workers: int | None,
    threads: int,
    address: str | None,
    progress: WorkerProgress,
) -> None:
    """Embed shards in actors; note the bad ones in the job."""
    ray = _import_ray()
    by_number = {shard.number: shard for shard in shards}
    with _connected(ray, address):
        ray.data.DataContext.get_current().enable_progress_bars = False  # elmore shows its own
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        logging.getLogger("ray.data._internal.progress").setLevel(logging.ERROR)
        if num_workers is None:
            num_workers = max(1, int(ray.cluster_resources().get("CPU", 1)) // threads)
        num_workers = min(num_workers, len(shards))
        rows = ray.data.from_items(
            [{"number": number} for number in by_number],
            override_num_blocks=len(by_number),
        )
        results = rows.map_batches(
            _Actor,
            fn_constructor_args=(job.worker, by_number),
            batch_size=1,
            num_cpus=CPUS_PER_ACTOR,
            compute=ray.data.ActorPoolStrategy(size=num_workers),
        )
        for row in results.iter_rows():
            if row["mistake"]:
                raise ElmoreError(row["mistake"])
            shard = by_number[row["number"]]
            if row["reason"]:
                job.note_bad(shard, row["reason"])
            progress.add(shard, row["tokens"], 0)
            progress.finish(shard)


def _import_ray() -> Any:
    try:
        import ray  # noqa: PLC0415  takes a second
        import ray.data  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(needed_for="the engine ray", extra="ray") from error
    return ray


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """Use a Ray that is running, or start one that only this machine can reach."""
    if ray.is_initialized():
        yield
        return
    if address is None:
        ray.init(
            # With any other address, Ray would listen to the network.
            _node_ip_address="127.0.0.1",
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            # Ray's environment hook for uv would send the working folder to the workers.
            runtime_env={"env_vars": _environment()},
        )
    else:
        _connect(ray, address)
    try:
        yield
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    """Connect to a cluster that is running."""
    advice = "check --address, or start a cluster with: ray start --head"
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        # Ray itself would try for minutes.
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise ElmoreError(f"there is no Ray at {address} ({error}); {advice}") from None
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ElmoreError(f"cannot use Ray at {address} ({reason:.300}); {advice}") from error


def _environment() -> dict[str, str]:
    """Return the variables that workers on this machine need to find the same elmore."""
    return {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}

"""Embed many text files into a folder of vector files, on this machine or on a Ray cluster."""

import os
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from elmore import ElmoreError, Embedder, FilesReport, explain_calls, plan_files
from elmore.cluster.local import run_locally
from elmore.cluster.progress import OnProgress, WorkerProgress
from elmore.cluster.ray_engine import run_on_ray

MAX_WORKERS = 1 << 16


class EngineName(StrEnum):
    """What runs the workers."""

    LOCAL = "local"
    """Processes on this machine."""
    RAY = "ray"
    """Actors of a Ray cluster, or of a Ray on this machine."""


@explain_calls()
def embed_files(
    embedder: Embedder | str | Path | None,
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    files_from: str | Path | None = None,
    file_format: str = "parquet",
    form: str | None = None,
    layers: Any = None,
    dtype: str = "f32",
    compress: bool = False,
    pool: str | None = None,
    per: str = "sentence",
    words: str | Path | Iterable[str] | None = None,
    dim: int | None = None,
    engine: EngineName | str = EngineName.LOCAL,
    workers: int | None = None,
    threads: int = 1,
    address: str | None = None,
    share: tuple[int, int] | str | None = None,
    shard_bytes: int = 4 << 20,
    kernel: str | None = None,
    restart: bool = False,
    on_progress: OnProgress | None = None,
) -> FilesReport:
    """Embed text files into a folder of vector files; like `elmore embed ... --out FOLDER/`.

    `texts` are paths, patterns, folders and URLs; `files_from` is a file that lists more of them.
    `out` is a folder or URL. Text is divided into shards of about `shard_bytes`, and each becomes
    one part, with a JSON description next to it. `form`, `layers`, `dtype`, `compress`, `pool`,
    `per`, `words` and `dim` are as for `embed_to_file`.

    `engine` "local" starts `workers` processes (by default one per core) with `threads` threads
    each. "ray" uses Ray, at `address` if given. With `share` (i, n), only the i-th of n equal
    shares of the shards is embedded: run one process per share, as in a Slurm array. `kernel`
    (avx2, avx512, torch) holds workers on different CPUs to the same one.

    If the call is interrupted, repeat it to resume: parts that are done are kept if their text and
    settings are the same. `report.bad` has the texts that could not be embedded, and why. Worker
    processes import the calling program, so protect its work with `if __name__ == "__main__"`.

    ```python
    report = elmore.embed_files(None, "texts/*.txt.gz", "vectors", pool="mean")
    for sentence in elmore.read_vectors("vectors"):
        print(sentence.source, sentence.line, sentence.vectors.shape)
    ```
    """
    if engine not in list(EngineName):
        raise ElmoreError(f"engine is {engine!r:.60}; choose one of: {', '.join(EngineName)}")
    if address is not None and engine != EngineName.RAY:
        raise ElmoreError(f"address is for the engine ray, but engine is {engine}; leave it out")
    chosen_share = _read_share(share)
    num_workers = _count_cores() if workers is None else workers
    if not isinstance(num_workers, int) or not 1 <= num_workers <= MAX_WORKERS:
        raise ElmoreError(f"workers is {workers!r:.60}; give a number from 1 to {MAX_WORKERS:,}")
    job = plan_files(
        embedder,
        texts,
        out,
        files_from=files_from,
        file_format=file_format,
        form=form,
        layers=layers,
        dtype=dtype,
        compress=compress,
        pool=pool,
        per=per,
        words=words,
        dim=dim,
        shard_bytes=shard_bytes,
        threads=threads,
        kernel=kernel,
        restart=restart,
    )
    pending = job.find_pending(share=chosen_share)
    progress = WorkerProgress(pending, on_progress)
    if not pending:
        pass
    elif engine == EngineName.RAY:
        run_on_ray(
            job, pending, num_workers=workers, threads=threads, address=address, progress=progress
        )
    else:
        run_locally(job, pending, num_workers=num_workers, progress=progress)
    return job.finish()


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # fewer than the machine has, in a container
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read_share(share: tuple[int, int] | str | None) -> tuple[int, int] | None:
    """Read (i, n) or "i/n".

    >>> _read_share("2/8")
    (2, 8)
    """
    if share is None:
        return None
    try:
        number, total = share.split("/") if isinstance(share, str) else share
        found = int(number), int(total)
    except (TypeError, ValueError):
        found = 0, 0
    if not 1 <= found[0] <= found[1]:
        raise ElmoreError(f"the share is {share!r:.60}; give i/n with i from 1 to n, such as 1/8")
    return found

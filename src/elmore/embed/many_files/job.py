"""A job over many text files: its shards, which of them are done, and its manifest."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from elmore.arguments import explain_calls
from elmore.config import VECTORS_IN_FILES, Precision, StatePolicy, read_precision
from elmore.embed.embedder import Embedder, load
from elmore.embed.job import choose_output, describe_vectors
from elmore.embed.layer_choice import Layers
from elmore.embed.many_files.inputs import TextInput, find_inputs
from elmore.embed.many_files.job_file import (
    FORMAT,
    KIND,
    begin,
    check_unchanged,
    read_plan,
    remove_other_parts,
)
from elmore.embed.many_files.output_folder import LocalFolder, RemoteFolder, open_folder
from elmore.embed.many_files.part_names import name_part, name_sidecar
from elmore.embed.many_files.shard_worker import OnTokens, ShardWorker
from elmore.embed.many_files.shards import ShardPlan, TextShard, plan_shards
from elmore.embed.other_names import OTHER_ARGUMENTS
from elmore.embed.pooling import Pool
from elmore.embed.unit import Unit
from elmore.embed.vector_file import DTYPES, FORMATS, check_vector_path
from elmore.embed.vector_folder import MANIFEST
from elmore.errors import ConfigError, DataError
from elmore.kernels.library import choosing_kernel
from elmore.settings import check_range
from elmore.text.excerpts import DocumentCuts
from elmore.text.files import TextForm
from elmore.text.inputs import read_form

SHARD_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True)
class FilesReport:
    """What a job over many files has done so far."""

    out: str
    num_parts: int
    num_parts_before: int  # of them, done by earlier runs
    num_sentences: int
    num_tokens: int
    num_bytes: int  # of all parts
    bad: dict[str, str]  # why, by the name of the part or of the text file
    is_complete: bool  # whether there is a manifest: every shard is done, or bad
    seconds: float
    model: str
    kernel: str | None


@dataclass(kw_only=True)
class FilesJob:
    """A job: every shard can be embedded in any process, any number of times.

    `worker.run(shard)` embeds one; a worker can be pickled, and is then small. `finish` writes the
    manifest.
    """

    folder: LocalFolder | RemoteFolder
    inputs: list[TextInput]
    plan: ShardPlan
    worker: ShardWorker
    bad: dict[int, str] = field(default_factory=dict)  # why, by the number of the shard
    started: float = field(default_factory=time.monotonic)
    num_before: int = 0
    asked: set[int] = field(default_factory=set)  # the numbers of the shards of this run

    @property
    def shards(self) -> list[TextShard]:
        """All shards, in the order of the texts."""
        return self.plan.shards

    def name_part(self, shard: TextShard) -> str:
        """Return the name of a shard's vector file."""
        return name_part(shard, settings=self.worker.settings, suffix=self.worker.suffix)

    def find_done(self, shards: Iterable[TextShard] | None = None) -> dict[int, dict[str, Any]]:
        """Return the descriptions of complete parts, by the numbers of their shards."""
        sizes = self.folder.sizes()
        done = {}
        for shard in self.shards if shards is None else shards:
            part = self.name_part(shard)
            if part not in sizes or name_sidecar(part) not in sizes:
                continue
            facts = self.folder.read_json(name_sidecar(part))
            if _describes(facts, part, shard, size=sizes[part], settings=self.worker.settings):
                done[shard.number] = facts
        return done

    def find_pending(self, *, share: tuple[int, int] | None = None) -> list[TextShard]:
        """Return the shards that are still to be embedded.

        With `share` (i, n), only every n-th of all shards, from the i-th (from 1) on.
        """
        mine = self.shards
        if share is not None:
            number, num_shares = share
            mine = [shard for shard in mine if shard.number % num_shares == number - 1]
        # A part that lacks a text is tried again: the reason may be gone.
        done = {number for number, facts in self.find_done(mine).items() if not facts["bad"]}
        self.num_before = len(done)
        self.asked = {shard.number for shard in mine}
        return [shard for shard in mine if shard.number not in done]

    def run(self, shard: TextShard, *, on_tokens: OnTokens | None = None) -> None:
        """Embed a shard in this process, or note why its text cannot be embedded."""
        reason = self.worker.try_run(shard, on_tokens=on_tokens)
        if reason is not None:
            self.note_bad(shard, reason)

    def note_bad(self, shard: TextShard, reason: str) -> None:
        """Note that a shard cannot be embedded."""
        self.bad[shard.number] = reason

    def finish(self) -> FilesReport:
        """Write the manifest if every shard is done or bad; return what was done."""
        check_unchanged(self)
        done = self.find_done()
        bad = {self.name_part(self.shards[number]): why for number, why in self.bad.items()}
        bad |= self.plan.bad_inputs
        for number in sorted(done.keys() & self.asked):
            bad |= done[number]["bad"]
        is_complete = all(shard.number in done or shard.number in self.bad for shard in self.shards)
        parts = [done[number] for number in sorted(done)]
        totals = {
            name: sum(part[name] for part in parts)
            for name in ("num_sentences", "num_tokens", "num_bytes")
        }
        if is_complete:
            remove_other_parts(self)
            kept = ("part", "num_sentences", "num_tokens", "num_bytes")
            self.folder.write_json(
                MANIFEST,
                {
                    "kind": KIND,
                    "format": FORMAT,
                    "elmore": self.worker.elmore_version,
                    "settings": self.worker.settings,
                    **totals,
                    "parts": [{name: part[name] for name in kept} for part in parts],
                    "bad": bad | {name: why for part in parts for name, why in part["bad"].items()},
                },
            )
            self.folder.remove_dead_attempts()
        return FilesReport(
            out=str(self.folder),
            num_parts=len(parts),
            num_parts_before=self.num_before,
            **totals,
            bad=bad,
            is_complete=is_complete,
            seconds=time.monotonic() - self.started,
            model=self.worker.header.model,
            kernel=self.worker.header.kernel,
        )


def _describes(
    facts: Any, part: str, shard: TextShard, *, size: int, settings: Mapping[str, Any]
) -> bool:
    try:
        return bool(
            facts["part"] == part
            and facts["num_bytes"] == size
            and facts["input"]["sha256"] == shard.sha256
            and facts["settings"] == settings
            and isinstance(facts["bad"], dict)
        )
    except (TypeError, LookupError):
        return False


@explain_calls(OTHER_ARGUMENTS)
def plan_files(
    embedder: Embedder | str | Path | None,
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    files_from: str | Path | None = None,
    file_format: str = "parquet",
    form: TextForm | str | None = None,
    layers: Layers | None = None,
    dtype: Precision | str = Precision.F32,
    compress: bool = False,
    pool: Pool | str | None = None,
    per: Unit | str = Unit.SENTENCE,
    words: str | Path | Iterable[str] | None = None,
    dim: int | None = None,
    shard_bytes: int = SHARD_BYTES,
    threads: int | None = 1,
    kernel: str | None = None,
    restart: bool = False,
) -> FilesJob:
    """Divide text files into shards and open their job, for engines of your own.

    The arguments are those of `embed_files`. Every shard of `job.find_pending()` is then embedded
    by `job.worker.run(shard)`, in any process on any machine that sees the files; `job.finish()`
    writes the manifest.

    ```python
    job = elmore.plan_files(elmore.load(), "texts/*.txt", "vectors")
    for shard in job.find_pending():
        job.run(shard)
    report = job.finish()
    ```
    """
    suffix = f".{file_format}".lower()
    if suffix not in FORMATS:
        known = ", ".join(name[1:] for name in FORMATS)
        raise ConfigError(f"the format of parts is {file_format!r:.60}; choose one of: {known}")
    precision = DTYPES[read_precision("dtype", dtype, VECTORS_IN_FILES)]
    check_vector_path(Path(f"part{suffix}"), dtype=precision)
    check_range("shard_bytes", shard_bytes, 1, 1 << 40)
    folder = open_folder(out)
    inputs = find_inputs(texts, files_from=files_from, form=read_form(form), outside=folder)
    with choosing_kernel(kernel):
        if not isinstance(embedder, Embedder):
            embedder = load(embedder)
        _check_embedder(embedder, kernel=kernel)
        choice = choose_output(embedder, layers=layers, pool=pool, per=per, words=words, dim=dim)
        header = describe_vectors(embedder, layers=layers, dtype=dtype, choice=choice)
    settings = {
        **asdict(header),
        "file_format": file_format,
        "compress": compress,
        "language": str(embedder.language),
        "shard_bytes": shard_bytes,
    }
    needs_documents = embedder.state is StatePolicy.DOCUMENT or choice.pools_documents
    cuts = DocumentCuts.REQUIRED if needs_documents else DocumentCuts.PREFERRED
    from elmore import __version__  # noqa: PLC0415  the package itself

    job = FilesJob(
        folder=folder,
        inputs=inputs,
        plan=ShardPlan(),
        worker=ShardWorker(
            pickled_embedder=_pickle(embedder),
            folder=str(folder if isinstance(folder, RemoteFolder) else folder.path.absolute()),
            suffix=suffix,
            layers=choice.find_layers(embedder.layers if layers is None else layers),
            choice=choice,
            header=header,
            settings=settings,
            compress=compress,
            threads=threads,
            kernel=kernel,
            elmore_version=__version__,
        ),
    )
    job.plan = read_plan(job, restart=restart) or plan_shards(
        inputs, shard_bytes=shard_bytes, language=embedder.language, documents=cuts
    )
    if not job.plan.shards and not job.plan.bad_inputs:
        raise DataError("the text files are empty; give files with text")
    begin(job)
    return job


def _pickle(embedder: Embedder) -> bytes:
    import pickle  # noqa: PLC0415

    return pickle.dumps(embedder)


def _check_embedder(embedder: Embedder, *, kernel: str | None) -> None:
    if embedder.state is StatePolicy.STREAM:
        raise ConfigError(
            "state policy stream carries the state from one file into the next, so files cannot be "
            "embedded independently; use reset or document, or embed the files one by one"
        )
    if kernel is not None and not embedder.kernel.startswith(kernel):
        raise ConfigError(
            f"kernel is {kernel!r:.60}, but this embedder uses {embedder.kernel}; load it with "
            f"ELMORE_KERNEL={kernel}, or give the path of its model"
        )

"""job.json: what a job over many files was started with, and how its texts are divided."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmore.embed.many_files.inputs import TextInput
from elmore.embed.many_files.part_names import PREFIX, name_sidecar
from elmore.embed.many_files.shards import ShardPlan, TextShard, TextSpan
from elmore.embed.vector_folder import JOB, MANIFEST
from elmore.errors import DataError
from elmore.files.owned_folder import ChangedJobError, find_changes
from elmore.text.files import TextForm

if TYPE_CHECKING:
    from elmore.embed.many_files.job import FilesJob

KIND = "elmore vectors of many files"
FORMAT = 1


def read_plan(job: "FilesJob", *, restart: bool) -> ShardPlan | None:
    """Return the plan of an earlier run over the same files; None if there is none."""
    earlier = job.folder.read_json(JOB)
    if not isinstance(earlier, dict) or earlier.get("kind") != KIND:
        others = [name for name in job.folder.sizes() if not name.startswith(".")]
        if others:
            raise DataError(
                f"{job.folder} contains other files, such as {others[0]!r:.60}, and no {JOB} of "
                "elmore; choose a new or empty folder"
            )
        return None
    if earlier.get("format") != FORMAT:
        raise DataError(
            f"{job.folder} has format {earlier.get('format')!r:.20}, this version of elmore writes "
            f"format {FORMAT}; use another folder"
        )
    changes = find_changes(earlier.get("settings", {}), job.worker.settings)
    if changes and not restart:
        raise ChangedJobError(Path(str(job.folder)), list(changes.values()))
    if changes or earlier.get("inputs") != _describe_inputs(job.inputs):
        return None
    try:
        return (
            ShardPlan(
                shards=[
                    TextShard(
                        number=shard["number"],
                        sha256=shard["sha256"],
                        spans=tuple(_read_span(span) for span in shard["spans"]),
                    )
                    for shard in earlier["shards"]
                ],
                # Files that could not be read may be readable now.
                bad_inputs={},
            )
            if not earlier["bad_inputs"]
            else None
        )
    except (TypeError, LookupError, ValueError):
        return None  # damaged: plan again


def _read_span(span: Mapping[str, Any]) -> TextSpan:
    return TextSpan(**{**span, "form": TextForm(span["form"])})


def _describe_inputs(inputs: Sequence[TextInput]) -> list[dict[str, Any]]:
    return [{**asdict(text), "form": str(text.form)} for text in inputs]


def begin(job: "FilesJob") -> None:
    """Write job.json, and delete the parts of texts and settings that are no longer asked for."""
    job.folder.create()
    content = _describe_job(job)
    if job.folder.read_json(JOB) != content:
        job.folder.remove(MANIFEST)
        job.folder.write_json(JOB, content)
    remove_other_parts(job)
    job.folder.remove_dead_attempts()


def check_unchanged(job: "FilesJob") -> None:
    """Raise an error if another command has taken over the folder since the job was started."""
    found = job.folder.read_json(JOB)
    # As JSON has them: no tuples.
    ours = json.loads(json.dumps(_describe_job(job)))
    if isinstance(found, dict):
        if all(found.get(name) == ours[name] for name in ("settings", "shards")):
            return
        _remove_unlisted_parts(job, found)
    raise DataError(
        f"another command has used {job.folder} for other texts or settings while this one was "
        "running; use a folder per job, or rerun the command"
    )


def remove_other_parts(job: "FilesJob") -> None:
    """Delete parts that do not belong to the job."""
    expected = {job.name_part(shard) for shard in job.shards}
    expected |= {name_sidecar(name) for name in expected}
    # Sidecars first: a part without one does not count.
    for name in sorted(_find_parts(job), key=lambda name: not name.endswith(".json")):
        if name not in expected:
            job.folder.remove(name)


def _remove_unlisted_parts(job: "FilesJob", found: Mapping[str, Any]) -> None:
    """Delete what this job wrote after another one had deleted its parts."""
    listed = {shard["part"] for shard in found.get("shards", ())}
    for shard in job.shards:
        part = job.name_part(shard)
        if part not in listed:
            job.folder.remove(name_sidecar(part))
            job.folder.remove(part)


def _describe_job(job: "FilesJob") -> dict[str, Any]:
    return {
        "kind": KIND,
        "format": FORMAT,
        "elmore": job.worker.elmore_version,
        "settings": job.worker.settings,
        "inputs": _describe_inputs(job.inputs),
        "shards": [
            {
                "number": shard.number,
                "sha256": shard.sha256,
                "part": job.name_part(shard),
                "spans": [{**asdict(span), "form": str(span.form)} for span in shard.spans],
            }
            for shard in job.shards
        ],
        "bad_inputs": job.plan.bad_inputs,
    }


def _find_parts(job: "FilesJob") -> Iterator[str]:
    return (name for name in job.folder.sizes() if name.startswith(PREFIX))

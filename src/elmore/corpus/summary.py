"""corpus.json: the totals of a corpus, and checksums of each file and of its own content.

Every value is checked when it is read, since the other files are located and validated with it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from elmore.corpus.folder import (
    COUNTS,
    DOCUMENTS,
    FILES,
    FORMAT,
    JOB,
    KIND,
    PARTS,
    SEGMENTS,
    SUMMARY,
    WORD_IDS,
    check_finished,
    damaged,
    read_ours,
)
from elmore.corpus.shards import NUM_MARKERS, ShardFacts, is_sha256
from elmore.files.atomic import replace_json
from elmore.files.hashing import hash_content
from elmore.files.untrusted import is_count

CHECKSUM = "checksum"
# The fields of corpus.json in versions of elmore that wrote no checksum of its own.
_NAMES_WITHOUT_CHECKSUM = {
    "kind",
    "format",
    "fingerprint",
    "settings",
    "inputs",
    "vocabulary_size",
    "parts",
    "bad_bytes",
    "notes",
    "files",
    "shards",
}
_TOTALS = ("documents", "sentences", "tokens", "characters", "symbols", "outside")


def read_summary(folder: Path) -> dict[str, Any]:
    """Read and validate corpus.json; raise a clear error if it is damaged or missing."""
    check_finished(folder)
    path = folder / SUMMARY
    summary = read_ours(path)
    try:
        _check(summary)
    except KeyError as error:
        raise damaged(f"{path} is damaged (it lacks {error})") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(f"{path} is damaged ({error!s:.200})") from None
    return summary


def write_summary(folder: Path, content: Mapping[str, Any]) -> None:
    """Write corpus.json with a checksum of its content."""
    content = {"kind": KIND, "format": FORMAT, **content}
    summary = {**content, CHECKSUM: hash_content(content, ignores=CHECKSUM)}
    replace_json(folder / SUMMARY, summary, indent=1)


def has_checksum(summary: Mapping[str, Any]) -> bool:
    """Return whether corpus.json has a checksum of its own; older versions wrote none."""
    return CHECKSUM in summary


def find_fingerprint(files: Mapping[str, Mapping[str, Any]], shards: Iterable[ShardFacts]) -> str:
    """Return what identifies a corpus: the checksum of all checksums."""
    checksums = [files[name]["sha256"] for name in FILES]
    checksums += [shard.sha256 for shard in shards]
    return hashlib.sha256("\n".join(checksums).encode()).hexdigest()


def _check(summary: Mapping[str, Any]) -> None:
    """Raise `ValueError`, `KeyError`, `TypeError` or `AttributeError` if it is invalid."""
    if has_checksum(summary):
        _expect(
            summary[CHECKSUM] == hash_content(summary, ignores=CHECKSUM), "its checksum differs"
        )
    else:  # if only the name "checksum" is damaged, it must not pass as an older version
        unknown = sorted(set(summary) - _NAMES_WITHOUT_CHECKSUM)
        _expect(not unknown, f"it has no checksum, and unknown fields: {', '.join(unknown)}")
    shards = [ShardFacts.from_json(entry) for entry in summary["shards"]]
    _check_parts(summary["parts"], shards)
    _check_files(summary, shards)
    _expect(
        summary["fingerprint"] == find_fingerprint(summary["files"], shards),
        "its fingerprint does not match its checksums",
    )
    _expect(isinstance(summary["settings"], dict), "its settings are not an object")
    _expect(_is_list(summary["inputs"], dict), "its inputs are not a list of objects")
    _check_inputs(summary["inputs"], shards)
    _expect(_is_list(summary["notes"], str), "its notes are not a list of strings")
    bad_bytes = summary["bad_bytes"]
    is_sound = is_count(bad_bytes["replaced"]) and _is_list(bad_bytes["first_places"], str)
    _expect(is_sound, "its bad_bytes are invalid")


def _check_inputs(inputs: list[dict[str, Any]], shards: list[ShardFacts]) -> None:
    for entry in inputs:
        is_sound = isinstance(entry["name"], str) and entry["part"] in PARTS
        _expect(is_sound, f"it has an invalid input: {entry!r:.60}")
    numbers = [number for shard in shards for number, _ in shard.inputs or []]
    _expect(
        max(numbers, default=-1) < len(inputs), "its shards refer to inputs that are not listed"
    )


def _check_parts(parts: Mapping[str, Any], shards: list[ShardFacts]) -> None:
    for part in PARTS:
        totals = parts[part]
        for name in _TOTALS:
            _expect(is_count(totals[name]), f"{part} has invalid {name}: {totals[name]!r:.60}")
        share = totals["outside_share"]
        _expect(
            isinstance(share, int | float) and 0 <= share <= 1,
            f"{part} has an invalid outside_share: {share!r:.60}",
        )
        _expect(
            totals["symbols"] == totals["tokens"] + NUM_MARKERS * totals["sentences"]
            and totals["outside"] <= totals["tokens"] <= totals["characters"]
            and totals["documents"] <= totals["sentences"] <= totals["tokens"]
            and (totals["documents"] > 0) == (totals["symbols"] > 0),
            f"the totals of {part} contradict each other",
        )
    for name, in_shards in (
        ("symbols", sum(shard.num_symbols for shard in shards)),
        ("sentences", sum(shard.num_sentences for shard in shards)),
    ):
        in_parts = sum(parts[part][name] for part in PARTS)
        _expect(in_parts == in_shards, f"its parts have {in_parts} {name}, its shards {in_shards}")


def _check_files(summary: Mapping[str, Any], shards: list[ShardFacts]) -> None:
    files, num_words = summary["files"], summary["vocabulary_size"]
    _expect(is_count(num_words), f"it has an invalid vocabulary_size: {num_words!r:.60}")
    # No other names: they are used as paths.
    _expect(set(files) == set(FILES), f"its files are {sorted(files)} instead of {sorted(FILES)}")
    job = {JOB: summary["job"]} if "job" in summary else {}  # older versions had no such entry
    for name, entry in {**files, **job}.items():
        is_sound = is_count(entry["bytes"]) and is_sha256(entry["sha256"])
        _expect(is_sound, f"its entry for {name} is invalid")
    sizes = {
        COUNTS: 8 * num_words,
        WORD_IDS: sum(4 * (shard.num_types + NUM_MARKERS) for shard in shards),
        **{DOCUMENTS[part]: 8 * (summary["parts"][part]["documents"] + 1) for part in PARTS},
    }
    for name, size in sizes.items():
        _expect(files[name]["bytes"] == size, f"{name} has the wrong size: {files[name]['bytes']}")
    for name in SEGMENTS.values():
        _expect(
            files[name]["bytes"] % 24 == 0, f"{name} has the wrong size: {files[name]['bytes']}"
        )


def _expect(is_true: bool, otherwise: str) -> None:
    if not is_true:
        raise ValueError(otherwise)


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)

"""The contents of corpus.json and job.json: how a corpus was made."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from elmore.corpus.folder import FILES, JOB
from elmore.corpus.index import PartTotals
from elmore.corpus.settings import PrepareSettings
from elmore.corpus.shard_workers import MAX_BAD_PLACES
from elmore.corpus.shards import ShardFacts
from elmore.corpus.summary import find_fingerprint
from elmore.corpus.text_chunks import Source
from elmore.errors import ConfigError
from elmore.files.hashing import hash_file
from elmore.text.files import open_text
from elmore.wording import count


def describe_inputs(texts: Sequence[Source]) -> list[dict[str, Any]]:
    """Return what identifies each text; find missing files now, before hours of work."""
    if all(text.is_heldout for text in texts):
        raise ConfigError("there is no text to prepare; give at least one file")
    inputs = []
    for text in texts:
        with open_text(text.source):
            pass
        size = text.source.stat().st_size if isinstance(text.source, Path) else None
        part = "heldout" if text.is_heldout else "train"
        inputs.append({"name": text.name, "size": size, "form": str(text.form), "part": part})
    return inputs


def describe_job(inputs: list[dict[str, Any]], settings: PrepareSettings) -> dict[str, Any]:
    """Return what the shards depend on; the rest may change until corpus.json is written."""
    return {
        "inputs": inputs,
        "language": str(settings.language),
        "chunk_bytes": settings.chunk_bytes,
    }


def describe_settings(settings: PrepareSettings) -> dict[str, Any]:
    """Return the settings for JSON, including the checksum of a given vocabulary."""
    content = asdict(settings)
    if settings.vocabulary is not None:
        checksum = hash_file(settings.vocabulary)
        content["vocabulary"] = {"name": str(settings.vocabulary), "sha256": checksum}
    return content


def describe_corpus(
    folder: Path,
    facts: Sequence[ShardFacts],
    *,
    inputs: list[dict[str, Any]],
    settings: PrepareSettings,
    totals: Mapping[str, PartTotals],
    num_words: int,
    max_missed: int,
) -> dict[str, Any]:
    """Return the content of corpus.json."""
    files = {name: _describe_file(folder / name) for name in FILES}
    bad_bytes = _describe_bad_bytes(facts, inputs)
    return {
        "fingerprint": find_fingerprint(files, facts),
        "settings": describe_settings(settings),
        "inputs": inputs,
        "vocabulary_size": num_words,
        "parts": {part: _describe_part(part_totals) for part, part_totals in totals.items()},
        "bad_bytes": bad_bytes,
        "notes": _make_notes(
            totals,
            settings,
            has_heldout_text=any(entry["part"] == "heldout" for entry in inputs),
            bad_bytes=bad_bytes,
            max_missed=max_missed,
        ),
        "files": files,
        # Not among the files, so that the fingerprint depends on the text alone.
        "job": _describe_file(folder / JOB),
        "shards": [asdict(shard) for shard in facts],
    }


def _describe_file(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": hash_file(path)}


def _describe_part(totals: PartTotals) -> dict[str, Any]:
    share = totals.outside / totals.tokens if totals.tokens else 0.0
    return {**asdict(totals), "outside_share": round(share, 6)}


def _describe_bad_bytes(
    facts: Sequence[ShardFacts], inputs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    positions = (
        f"{inputs[source_number]['name']}, line {line}: byte 0x{byte:02x}"
        for shard in facts
        for source_number, line, byte in shard.bad_places
    )
    return {
        "replaced": sum(shard.num_bad for shard in facts),
        "first_places": list(islice(positions, MAX_BAD_PLACES)),
    }


def _make_notes(
    totals: Mapping[str, PartTotals],
    settings: PrepareSettings,
    *,
    has_heldout_text: bool,
    bad_bytes: dict[str, Any],
    max_missed: int,
) -> list[str]:
    """Return notes for the user, one sentence each."""
    notes = []
    if totals["heldout"].documents:
        pass
    elif has_heldout_text:
        notes.append("no text is held out, because the held-out files contain no sentences")
    elif settings.heldout:
        notes.append(
            "no text is held out, because the text is a single document; separate documents with "
            "blank lines, limit their length with --document-sentences, or use --heldout-text"
        )
    if bad_bytes["replaced"]:
        positions = "; ".join(bad_bytes["first_places"])
        notes.append(
            f"replaced {count(bad_bytes['replaced'], 'byte')} that are not UTF-8 with U+FFFD; the "
            f"first: {positions}"
        )
    if max_missed:
        notes.append(
            f"there are more than {settings.max_types:,} distinct tokens, so the rarest were "
            "dropped while counting; the counts that the vocabulary is based on may be too low by "
            f"up to {max_missed:,}"
        )
    return notes

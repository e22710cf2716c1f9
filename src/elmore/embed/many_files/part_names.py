"""The names of a job's files: they follow from the text and the settings alone."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from elmore.embed.many_files.shards import TextShard

PREFIX = "part-"


def name_part(shard: TextShard, *, settings: Mapping[str, Any], suffix: str) -> str:
    """Return the name of a shard's vector file, such as part-00017-0a1b2c3d4e5f.parquet."""
    content = json.dumps([shard.sha256, settings], sort_keys=True).encode()
    return f"{PREFIX}{shard.number:05d}-{hashlib.sha256(content).hexdigest()[:12]}{suffix}"


def name_sidecar(part: str) -> str:
    """Return the name of the JSON file that describes a part.

    >>> name_sidecar("part-00017-0a1b2c3d4e5f.parquet")
    'part-00017-0a1b2c3d4e5f.json'
    """
    return f"{part.rpartition('.')[0]}.json"

"""What only some vector files say of a sentence: its id, its file, where its tokens are."""

from collections.abc import Mapping
from typing import Any

from elmore.embed.token_escapes import escape_token, unescape_token
from elmore.embed.vector_file import SentenceVectors

OPTIONAL = ("key", "source", "position")


def write_optional(sentence: SentenceVectors) -> dict[str, str]:
    """Return the columns that this sentence has, each as one line of text."""
    columns = {}
    if sentence.key is not None:
        columns["key"] = escape_token(sentence.key)
    if sentence.source is not None:
        columns["source"] = escape_token(sentence.source)
    if sentence.positions is not None:
        columns["position"] = " ".join(map(str, sentence.positions))
    return columns


def read_optional(columns: Mapping[str, str]) -> dict[str, Any]:
    """Return arguments of `SentenceVectors` from what `write_optional` returned."""
    facts: dict[str, Any] = {
        name: unescape_token(columns[name]) for name in ("key", "source") if name in columns
    }
    if "position" in columns:
        facts["positions"] = [int(number) for number in columns["position"].split()]
    return facts

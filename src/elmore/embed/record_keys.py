"""The ids of records in the order of the input: names of arrays in a vector file."""

from elmore.config import StatePolicy
from elmore.embed.vector_file import name_array
from elmore.errors import ConfigError, DataError

# Other arrays in vector files.
RESERVED = (
    "sentences", "line", "key", "source", "position", "header", "sentence_to_index", ".", "..",
)  # fmt: skip


class RecordKeys:
    """Ids, each of which must name one array; empty if the input has no ids."""

    def __init__(self, *, state: StatePolicy) -> None:
        self._state = state
        self._keys: list[str] = []
        self._seen: set[str] = set(RESERVED)

    def add(self, key: str, *, line: int) -> None:
        """Add the id of the next record."""
        if self._state is StatePolicy.DOCUMENT:
            raise ConfigError(
                "in FASTA every record is a document of its own, so state policies document and "
                "reset are the same; use reset"
            )
        name = name_array(key)
        if name in self._seen:
            reason = "is used for other data" if name in RESERVED else "occurs twice"
            raise DataError(
                f"line {line}: the id {key!r:.60} {reason}, but must name the vectors of one "
                "record; change it"
            )
        self._seen.add(name)
        self._keys.append(key)

    def find(self, number: int) -> str | None:
        """Return the id of record `number`, from 0."""
        return self._keys[number] if self._keys else None

"""The names of all tasks, for the command line's help, which must not wait for torch."""

# Each task with its other names; `table.py` has their classes.
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "entities": ("ner",),
    "tags": ("pos", "chunks"),
    "sentiment": ("sst",),
    "entailment": ("snli",),
    "roles": ("srl",),
    "coreference": ("coref",),
    "questions": ("squad", "qa"),
    "texts": (),
    "pairs": (),
}


def list_names() -> str:
    """Return all names for a message."""
    return ", ".join(
        f"{name} ({', '.join(others)})" if others else name for name, others in OTHER_NAMES.items()
    )

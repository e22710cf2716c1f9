"""Where a model was loaded from, so that another process can load the same one."""

from dataclasses import dataclass
from pathlib import Path

from elmore.errors import ModelError
from elmore.weights.hub import find_folder


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSource:
    """The files of a model, as absolute paths; all None means the model shipped with elmore."""

    path: str | None = None
    options: str | None = None
    token_embeddings: str | None = None
    vocabulary: str | None = None
    # For a hub model, `path` is a snapshot of this commit, and is downloaded again if missing.
    hub_id: str | None = None
    revision: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether this is the model shipped with elmore."""
        return self.path is None

    def __str__(self) -> str:
        """Return the name of the model for messages."""
        return self.hub_id or self.path or "the elmore package"

    def find(self) -> Path:
        """Return the current path of the model."""
        assert self.path is not None
        if self.hub_id is None or Path(self.path).exists():
            return find_folder(self.path)
        return find_folder(self.hub_id, revision=self.revision)


def find_source(
    source: str | Path | None,
    *,
    options: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    vocabulary: str | Path | None = None,
    revision: str | None = None,
) -> ModelSource:
    """Find a model, downloading it first if `source` is a hub id."""
    if source is None:
        if options or token_embeddings or vocabulary:
            raise ModelError("options, token embeddings and vocabulary need weights; give a model")
        return ModelSource()
    path = find_folder(source, **({"revision": revision} if revision else {}))
    is_fetched = path != Path(source).expanduser()
    # The hub's cache names a snapshot's folder after its commit; a branch may change later.
    is_snapshot = is_fetched and path.parent.name == "snapshots"
    return ModelSource(
        path=_make_absolute(path),
        options=_make_absolute(options),
        token_embeddings=_make_absolute(token_embeddings),
        vocabulary=_make_absolute(vocabulary),
        hub_id=str(source) if is_fetched else None,
        revision=path.name if is_snapshot else revision,
    )


def _make_absolute(path: str | Path | None) -> str | None:
    return str(Path(path).absolute()) if path else None

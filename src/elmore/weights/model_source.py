"""Where a model was loaded from, so that another process can load the same one."""

from dataclasses import dataclass
from pathlib import Path

from elmore.errors import ModelError
from elmore.weights.hub import find_folder


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSource:
    """The files of a model, as absolute paths; all None is the model that comes with elmore."""

    path: str | None = None
    options: str | None = None
    token_embeddings: str | None = None
    vocabulary: str | None = None
    # A model of the hub: `path` is a snapshot of this commit, fetched again where it is missing.
    hub_id: str | None = None
    revision: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether this is the model that comes with elmore."""
        return self.path is None

    def __str__(self) -> str:
        """Name the model in messages."""
        return self.hub_id or self.path or "the elmore package"

    def find(self) -> Path:
        """Return where the model is now."""
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
    """Find a model, fetched first if `source` is an id of the hub."""
    if source is None:
        if options or token_embeddings or vocabulary:
            raise ModelError("options, token embeddings and vocabulary need weights; name a model")
        return ModelSource()
    path = find_folder(source, **({"revision": revision} if revision else {}))
    is_fetched = path != Path(source).expanduser()
    # The hub's cache names the folder of a snapshot after its commit; a branch may move on.
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

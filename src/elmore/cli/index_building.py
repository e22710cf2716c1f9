"""Build an index while a bar shows how far it is; for `index` and `explore`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elmore.cli.display import report_interrupt, show_tokens

if TYPE_CHECKING:
    from elmore.embed.embedder import Embedder
    from elmore.explore.build_index import IndexReport
    from elmore.text.files import TextForm


def build_shown(
    paths: Sequence[Path],
    out: Path,
    *,
    embedder: "Embedder",
    layers: str = "all",
    words: Sequence[str] = (),
    form: "TextForm | None" = None,
    restart: bool = False,
) -> "IndexReport":
    """Index text files, and say how to resume if it is interrupted."""
    from elmore.explore.build_index import build_index  # noqa: PLC0415  brings torch

    num_bytes = sum(path.stat().st_size for path in paths)
    with report_interrupt(restart=restart), show_tokens("indexing", total=num_bytes) as bar:

        def show(num_read: int, num_tokens: int) -> None:
            bar.set_speed(num_tokens)
            bar.update(completed=num_read, tokens=num_tokens)

        return build_index(
            paths,
            out,
            model=embedder,
            layers=layers,
            words=words,
            form=form,
            restart=restart,
            on_progress=show,
        )

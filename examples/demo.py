"""Show that a word gets another vector in every context, and write all vectors to a file.

Run it by `make demo`.
"""

import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import elmore
from elmore.embed.embedder import Embedder
from elmore.embed.job import embed_to_file
from elmore.explore.neighbors import Context, collect_contexts
from elmore.text.files import TextForm, read_sentences

HERE = Path(__file__).parent
OUT = HERE.parent / "out" / "demo.h5"
WORDS = ("bank", "play", "spring", "light")


def main() -> None:
    """Embed the example sentences with the model that comes with elmore."""
    console = Console()
    embedder = elmore.load()
    about = embedder.model.config.about
    sentences = list(read_sentences(HERE / "sentences.txt", form=TextForm.RAW))
    console.print(f"model {about.name}: {embedder.num_layers} layers of {embedder.vector_dim}")
    console.print(
        "Alone, before its sentence is read, a word has one vector, whatever it means. In its "
        "sentence, this is the other use that each use is closest to, by layer 1:"
    )
    table = Table()
    table.add_column("use")
    table.add_column("closest other use")
    table.add_column("cosine", justify="right")
    for word in WORDS:
        add_uses(table, embedder, word, sentences)
    console.print(table)
    OUT.parent.mkdir(exist_ok=True)
    report = embed_to_file(embedder, sentences, OUT, layers="all")
    console.print(
        f"wrote {OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT}: "
        f"all layers of {report.num_tokens} tokens in {report.num_sentences} sentences"
    )


def add_uses(table: Table, embedder: Embedder, word: str, sentences: list[list[str]]) -> None:
    """Find for each use of a word the one that is closest to it."""
    # Layer 1: docs/models/english.md has it a little ahead of the top one in telling uses apart.
    contexts, vectors = collect_contexts(embedder, word, sentences, layers=1)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    table.add_section()
    for context, row in zip(contexts, cosines, strict=True):
        closest = int(row.argmax())
        table.add_row(mark_word(context), mark_word(contexts[closest]), f"{row[closest]:.2f}")


def mark_word(context: Context) -> str:
    """Return a sentence with brackets around the word."""
    tokens = [*context.tokens]
    tokens[context.position] = f"[bold]\\[{tokens[context.position]}][/bold]"
    return " ".join(tokens)


if __name__ == "__main__":
    sys.exit(main())

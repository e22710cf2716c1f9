"""Show that a word gets another vector in every context, and write all vectors to a file.

Run it by `make demo`.
"""

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import elmore
from elmore.embed.embedder import Embedder
from elmore.embed.job import embed_to_file
from elmore.explore.neighbors import collect_contexts
from elmore.text.files import TextForm, read_sentences

HERE = Path(__file__).parent
OUT = HERE.parent / "out" / "demo.h5"
WORDS = ("bank", "play", "spring", "light")


def main() -> None:
    """Embed the example sentences with the default model."""
    console = Console()
    embedder = elmore.load()
    about = embedder.model.config.about
    sentences = list(read_sentences(HERE / "sentences.txt", form=TextForm.RAW))
    console.print(f"model {about.name}: {embedder.num_layers} layers of {embedder.vector_dim}")
    if not about.is_trained:
        console.print(
            "[bold]This model is untrained[/bold]: its weights are random, from a fixed seed. "
            "That a word's vectors differ between contexts is how ELMo works; which of them are "
            "close means nothing until a trained model is used."
        )
    table = Table(title="cosine of each use of a word with its first use")
    table.add_column("alone", justify="right")
    table.add_column("in context", justify="right")
    table.add_column("use")
    for word in WORDS:
        add_uses(table, embedder, word, sentences)
    console.print(table)
    OUT.parent.mkdir(exist_ok=True)
    report = embed_to_file(embedder, sentences, OUT, mix="all")
    console.print(
        f"wrote {OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT}: "
        f"all layers of {report.num_tokens} tokens in {report.num_sentences} sentences"
    )


def add_uses(table: Table, embedder: Embedder, word: str, sentences: list[list[str]]) -> None:
    """Compare the uses of a word: its vector below the LSTMs, and on top of them."""
    contexts, alone = collect_contexts(embedder, word, sentences, mix=0)
    _, in_context = collect_contexts(embedder, word, sentences, mix="top")
    table.add_section()
    for context, low, high in zip(contexts, alone, in_context, strict=True):
        marked = [*context.tokens]
        marked[context.position] = f"[bold]\\[{marked[context.position]}][/bold]"
        table.add_row(f"{low @ alone[0]:.3f}", f"{high @ in_context[0]:.3f}", " ".join(marked))


if __name__ == "__main__":
    sys.exit(main())

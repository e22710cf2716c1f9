"""Show that a word gets a different vector in every context, and write all vectors to a file.

python examples/demo.py [WORD ...]       # bank, play, spring or light; `make demo` shows bank
"""

import sys
from pathlib import Path

import elmore

HERE = Path(__file__).parent
OUT = HERE.parent / "out" / "demo.h5"


def main(words: list[str]) -> None:
    """Compare the uses of some words in the example sentences, and embed them all."""
    embedder = elmore.load()
    print("Each use of the word, and the other use whose vector is most similar (cosine):")
    sentences = (HERE / "sentences.txt").read_text(encoding="utf-8").splitlines()
    for word in words:
        show_uses(word, sentences, embedder)
    OUT.parent.mkdir(exist_ok=True)
    report = elmore.embed_to_file(embedder, sentences, OUT, layers="all")
    path = OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT
    print(f"wrote {path}: {report.num_sentences} sentences, {report.num_tokens} tokens, all layers")


def show_uses(word: str, sentences: list[str], embedder: elmore.Embedder) -> None:
    """Print each use of a word and the other use that is most similar to it."""
    uses = [sentence for sentence in sentences if word in embedder.tokenize(sentence)]
    for number, use in enumerate(uses):
        others = uses[:number] + uses[number + 1 :]
        (closest,) = elmore.neighbors(
            word, others, query=use, model=embedder, layers="average", top=1
        )
        print(f"\n  {use}")
        print(f"  {closest.similarity:.2f}  {' '.join(closest.context.tokens)}")
    print()


if __name__ == "__main__":
    main(sys.argv[1:] or ["bank"])

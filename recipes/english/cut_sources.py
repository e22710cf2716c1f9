"""Cut the collections that the English model is trained on into one file per source.

    python -m recipes.english.cut_sources DATA OUT

DATA has `lm_books` and `lm_enwik8` (one sentence per line, a blank line between documents),
`lm_modern` (the same, source after source, listed in its INDEX files) and `lm_acl`. OUT gets
NAME.txt and heldout_NAME.txt for every source.
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from recipes.english.cut_text import read_documents, read_index

FIRST_HELDOUT_YEAR = 1880
"""Held-out books are chosen among these: the same ones as in the first edition of the model."""
FIRST_YEAR = 1900
"""Older books are left out: training time is limited, and today's words matter more."""
HELDOUT_BOOK, HELDOUT_DOCUMENT = 70, 100
"""One in this many is held out, by its position in the collection."""

# Which file each source of `lm_modern` goes into; the longest matching prefix decides.
MODERN = {
    "gucorpling+amalgum/academic": "modern_papers",
    "gucorpling+amalgum/bio": "modern_wikipedia",
    "gucorpling+amalgum/interview": "modern_news",
    "gucorpling+amalgum/wikinews": "modern_news",
    "gucorpling+amalgum/voyage": "modern_guides",
    "mdn+content": "modern_docs",
    "kubernetes+website": "modern_docs",
    "brianwc+bulk_scotus": "modern_law",
    "openstax/": "modern_textbooks",
    "wikipedia/": "modern_wikipedia",
    "elife/": "modern_science",
    "medquad/": "modern_health",
    "digital.gov/": "modern_guides",
    "18f/": "modern_guides",
    "state-of-the-union/": "modern_guides",
    "cia-world-factbook": "modern_guides",
    "programming-historian/": "modern_docs",
    "the-turing-way": "modern_docs",
    "opensource.guide": "modern_docs",
    "creative-commons-certificate": "modern_guides",
    "github-docs": "modern_docs",
    "python-peps": "modern_docs",
}


def find_file(source: str) -> str:
    """Return the name of the file that a source of `lm_modern` goes into."""
    prefixes = [prefix for prefix in MODERN if source.startswith(prefix)]
    if not prefixes:
        raise SystemExit(f"lm_modern has a source {source!r} that MODERN does not list; add it")
    return MODERN[max(prefixes, key=len)]


def read_modern(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of its file and the text of each document of `lm_modern`."""
    for index, text in (
        ("INDEX.tsv", "modern_sentences.txt.xz"),
        ("INDEX2.tsv", "modern2_sentences.txt.xz"),
    ):
        documents = read_documents(folder / text)
        for line in (folder / index).read_text(encoding="utf-8").splitlines():
            source, _, num_documents, num_sentences = line.split("\t")[:4]
            taken = list(islice(documents, int(num_documents)))
            found = sum(document.count("\n") for document in taken)
            if found != int(num_sentences):
                raise SystemExit(
                    f"{folder / text}: {source} has {found} sentences and {index} says "
                    f"{num_sentences}; use files that belong together"
                )
            yield from ((find_file(source), document) for document in taken)


class Writer:
    """Writes the documents of a source into its two files, one in every `every` held out."""

    def __init__(self, out: Path, name: str, *, every: int) -> None:
        self.name = name
        self.every = every
        self.num_documents = 0
        self.heldout: list[int] = []
        self._train = (out / f"{name}.txt").open("w", encoding="utf-8", newline="\n")
        self._heldout = (out / f"heldout_{name}.txt").open("w", encoding="utf-8", newline="\n")

    def write(self, document: str, *, is_trained_on: bool = True) -> None:
        """Add a document to the held-out file if its number says so, or else to the other."""
        if self.num_documents % self.every == self.every - 1:
            self._heldout.write(document + "\n")
            self.heldout.append(self.num_documents)
        elif is_trained_on:
            self._train.write(document + "\n")
        self.num_documents += 1

    def close(self) -> None:
        """Finish the files and print what was held out."""
        self._train.close()
        self._heldout.close()
        print(f"{self.name}: {len(self.heldout)} of {self.num_documents} documents held out")


def cut_books(folder: Path, out: Path) -> None:
    """Write books.txt and heldout_books.txt."""
    index = read_index(folder / "INDEX.tsv")
    books = list(read_documents(folder / "books_sentences.txt.xz"))
    if [book.count("\n") for book in books] != [sentences for _, _, sentences in index]:
        raise SystemExit(f"{folder}: the books are not those of INDEX.tsv; use files that match")
    writer = Writer(out, "books", every=HELDOUT_BOOK)
    recent = [
        (title, year, book)
        for (title, year, _), book in zip(index, books, strict=True)
        if year is not None and year >= FIRST_HELDOUT_YEAR
    ]
    for _, year, book in recent:
        writer.write(book, is_trained_on=year >= FIRST_YEAR)
    writer.close()
    for position in writer.heldout:
        title, year, _ = recent[position]
        print(f"  held out: {title} ({year})")


def main() -> None:
    """Read the arguments and write all files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    data, out = arguments.data, arguments.out
    out.mkdir(parents=True, exist_ok=True)

    cut_books(data / "lm_books", out)
    for name, path in (
        ("articles", data / "lm_enwik8" / "enwik8_sentences.txt.xz"),
        ("abstracts", data / "lm_acl" / "acl_abstracts_2016plus.txt.xz"),
    ):
        writer = Writer(out, name, every=HELDOUT_DOCUMENT)
        for document in read_documents(path):
            writer.write(document)
        writer.close()
    writers = {
        name: Writer(out, name, every=HELDOUT_DOCUMENT) for name in dict.fromkeys(MODERN.values())
    }
    for name, document in read_modern(data / "lm_modern"):
        writers[name].write(document)
    for writer in writers.values():
        writer.close()


if __name__ == "__main__":
    main()

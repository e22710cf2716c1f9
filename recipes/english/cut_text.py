"""Cut the two collections of the first English model, and hold out books and articles.

    python recipes/english/cut_text.py DATA OUT

DATA has `lm_books` (one sentence per line, a blank line between books, INDEX.tsv: a line per book)
and `lm_enwik8` (the same, for articles). OUT gets books.txt, articles.txt and the held-out parts of
both.
"""

import argparse
import lzma
from collections.abc import Iterator
from pathlib import Path

FIRST_YEAR = 1880
"""Older books are left out: training time is limited, and today's words matter more."""
HELDOUT_BOOK, HELDOUT_ARTICLE = 70, 100
"""One in this many is held out, counted among those that are used."""


def read_documents(path: Path) -> Iterator[str]:
    """Yield the documents of a compressed file, each ending with a newline."""
    lines: list[str] = []
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            if line.strip():
                lines.append(line)
            elif lines:
                yield "".join(lines)
                lines = []
    if lines:
        yield "".join(lines)


def read_index(path: Path) -> list[tuple[str, int | None, int]]:
    """Return the title, year and sentences of each book that has sentences.

    Years BC and unknown ones are None.
    """
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    index = [(row[0], int(row[1]) if row[1].isdecimal() else None, int(row[2])) for row in rows]
    return [entry for entry in index if entry[2]]


def split(documents: Iterator[str], every: int, name: str, out: Path) -> list[int]:
    """Write documents to two files; return the indices of the held-out ones."""
    held_out = []
    with (
        (out / f"{name}.txt").open("w", encoding="utf-8", newline="\n") as train,
        (out / f"heldout_{name}.txt").open("w", encoding="utf-8", newline="\n") as heldout,
    ):
        for number, document in enumerate(documents):
            is_heldout = number % every == every - 1
            (heldout if is_heldout else train).write(document + "\n")
            if is_heldout:
                held_out.append(number)
    return held_out


def main() -> None:
    """Read the arguments and write four files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    folder = arguments.data / "lm_books"
    index = read_index(folder / "INDEX.tsv")
    books = list(read_documents(folder / "books_sentences.txt.xz"))
    if [book.count("\n") for book in books] != [sentences for _, _, sentences in index]:
        raise SystemExit(
            f"{folder}: the books are not those of INDEX.tsv; take both from the same source"
        )
    taken = [i for i, (_, year, _) in enumerate(index) if year is not None and year >= FIRST_YEAR]
    held_out = split((books[i] for i in taken), HELDOUT_BOOK, "books", arguments.out)
    print(f"{len(taken)} books of {FIRST_YEAR} or later, held out:")
    for number in held_out:
        title, year, _ = index[taken[number]]
        print(f"  {title} ({year})")
    articles = read_documents(arguments.data / "lm_enwik8" / "enwik8_sentences.txt.xz")
    held_out = split(articles, HELDOUT_ARTICLE, "articles", arguments.out)
    print(f"{len(held_out)} articles held out")


if __name__ == "__main__":
    main()

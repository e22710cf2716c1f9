"""Cut sentences with ambiguous words from public-domain books, for the example index.

    python recipes/example_index/cut_text.py BOOKS recipes/example_index/texts

BOOKS is a folder with books_sentences.txt.xz (one sentence per line, a blank line between books)
and INDEX.tsv (author/title.md, year and more, in the same order). For each word, sentences are
taken at even distances from all those that have it once, are neither short nor long, and contain
no word that would offend. Each book gets a file, named after its author, title and year.
"""

import argparse
import lzma
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS = ("bank", "spring", "light", "play", "bear", "match", "watch", "ring", "fair", "court")
USES_PER_WORD = 90
MIN_WORDS, MAX_WORDS = 8, 26
# Written in English and published before 1929, so in the public domain in the United States.
BOOKS = (
    "Arthur Conan Doyle/The Hound of the Baskervilles",
    "Bram Stoker/Dracula",
    "Charles Dickens/A Tale of Two Cities",
    "Charles Dickens/Great Expectations",
    "E.M. Forster/Howards End",
    "Edith Wharton/The House of Mirth",
    "Frances Hodgson Burnett/The Secret Garden",
    "Frank Norris/The Pit",
    "G.K. Chesterton/The Innocence of Father Brown",
    "George Eliot/Middlemarch",
    "H.G. Wells/The Invisible Man",
    "Henry David Thoreau/Walden",
    "Jack London/Martin Eden",
    "Jack London/White Fang",
    "Jerome K. Jerome/Three Men in a Boat",
    "Kenneth Grahame/The Wind in the Willows",
    "Louisa May Alcott/Little Women",
    "Mark Twain/Life on the Mississippi",
    "Robert Louis Stevenson/Kidnapped",
    "Upton Sinclair/The Jungle",
)
LEFT_OUT = re.compile(
    r"nigg|negro|squaw|savage|heathen|jew\b|jews\b|jewish|gyps|darky|darkies|coloured|colored|"
    r"injun|indian|chinaman|slave|whore|rape|suicide|kill|murder|hang|corpse|blood",
    flags=re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A sentence that has the word once."""

    book: str
    number: int  # of the sentence in the book
    text: str


def main() -> None:
    """Write one file per book."""
    parser = argparse.ArgumentParser()
    parser.add_argument("books", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    candidates: dict[str, list[Candidate]] = {word: [] for word in WORDS}
    for candidate in read_books(arguments.books):
        for word in find_words(candidate.text):
            candidates[word].append(candidate)
    chosen: set[Candidate] = set()
    for word, found in candidates.items():
        kept = [found[n * len(found) // USES_PER_WORD] for n in range(USES_PER_WORD)]
        chosen.update(kept if len(found) > USES_PER_WORD else found)
        print(f"{word}: {min(len(found), USES_PER_WORD)} of {len(found)} sentences")
    by_book: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in sorted(chosen, key=lambda c: (c.book, c.number)):
        by_book[candidate.book].append(candidate)
    arguments.out.mkdir(exist_ok=True)
    for book, sentences in by_book.items():
        text = "".join(f"{sentence.text}\n" for sentence in sentences)
        (arguments.out / f"{book}.txt").write_text(text, encoding="utf-8")


def read_books(folder: Path) -> Iterator[Candidate]:
    """Yield the sentences of the chosen books that may be used."""
    lines = (folder / "INDEX.tsv").read_text(encoding="utf-8").splitlines()
    index = [line.split("\t") for line in lines]
    with lzma.open(folder / "books_sentences.txt.xz", "rt", encoding="utf-8") as file:
        for name, year, num_sentences, *_ in index:
            title = name.removesuffix(".md")
            author, _, title_alone = title.partition("/")
            for number in range(int(num_sentences)):
                text = file.readline().strip()
                if title in BOOKS and is_usable(text):
                    book = f"{author}, {title_alone} ({year})"
                    yield Candidate(book=book, number=number, text=text)
            blank = file.readline().strip()
            assert not blank, f"{name} has another number of sentences than INDEX.tsv says"


def is_usable(text: str) -> bool:
    """Return whether a sentence is whole, of moderate length, and offends nobody."""
    return (
        MIN_WORDS <= len(text.split()) <= MAX_WORDS
        and text[0].isupper()
        and text[-1] in ".!?"
        and LEFT_OUT.search(text) is None
        and not set('"“”*_[]()') & set(text)
    )


def find_words(text: str) -> list[str]:
    """Return the words that occur once in a sentence.

    >>> find_words("The light is light, and the Bank is near.")
    ['bank']
    """
    found = re.findall(r"[a-z]+(?:['’-][a-z]+)*", text.lower())
    return [word for word in WORDS if found.count(word) == 1]


if __name__ == "__main__":
    main()

"""Cut a segmented and tagged Chinese corpus into sentences of words, and hold out articles.

    python recipes/chinese/cut_text.py 199801.txt [MORE ...] OUT

A line of the corpus is a paragraph, `迈向/v  希望/n`, names in brackets, `[中国/ns  政府/n]nt`. An
article ends at a blank line or, if paragraphs are numbered (`19980101-01-001-002/m`), where the
third part of the number changes. OUT gets train.txt and heldout.txt: one sentence per line, a
blank line between articles.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from elmore.errors import DataError, ElmoreError
from elmore.tasks.data.lines import read_lines

HELDOUT_ARTICLE = 50
"""The distance between articles that are held out."""

Sentences = list[list[str]]

_TAGGED = re.compile(r"\[*(.+)/[A-Za-z]+(?:\]/?[A-Za-z]+)*")
_NUMBER = re.compile(r"([0-9]{6,8}-[0-9]+-[0-9]+)-[0-9]+")
_STOP = re.compile(r"[。！？]")
# Also part of the sentence: further marks, closing quotes and brackets.
_AFTER_STOP = re.compile(r"[。！？…”’」』）》〉】]+")
_WIDE = re.compile(r"[０-９Ａ-Ｚａ-ｚ]")
_NARROW = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}


def read_corpus(paths: Iterable[Path]) -> list[Sentences]:
    """Return all articles; raise an error if there are none."""
    paths = list(paths)
    articles = [article for path in paths for article in read_articles(path)]
    if not articles:
        raise DataError(f"no words in {', '.join(map(str, paths))}; give a corpus that has some")
    return articles


def read_articles(path: Path) -> Iterator[Sentences]:
    """Yield the sentences of each article."""
    article: Sentences = []
    number = None
    for line_number, line in read_lines(path):
        words = read_words(line, where=f"{path}, line {line_number}")
        is_numbered = bool(words) and _NUMBER.fullmatch(words[0])
        if not words or (is_numbered and is_numbered[1] != number):
            if article:
                yield article
            article = []
        if is_numbered:
            number = is_numbered[1]
            words = words[1:]
        article += split_paragraph(list(map(narrow, words)))
    if article:
        yield article


def read_words(line: str, *, where: str) -> list[str]:
    """Return the words of a line, without tags and brackets.

    >>> read_words("[中国/ns  政府/n]nt  ，/w", where="line 1")
    ['中国', '政府', '，']
    """
    words = []
    for item in line.split():
        tagged = _TAGGED.fullmatch(item)
        if tagged is None:
            raise DataError(
                f"{where}: expected words with tags, such as 希望/n, got {item[:40]!r}; fix the "
                "line, or give a segmented and tagged corpus"
            )
        words.append(tagged[1])
    return words


def split_paragraph(words: Iterable[str]) -> Sentences:
    """Cut a paragraph after 。, ！ and ？, and the marks that follow them."""
    sentences: Sentences = []
    is_over = True
    for word in words:
        if is_over and not (sentences and _AFTER_STOP.fullmatch(word)):
            sentences.append([])
            is_over = False
        sentences[-1].append(word)
        is_over = is_over or _STOP.fullmatch(word) is not None
    return sentences


def narrow(word: str) -> str:
    """Convert full-width digits and Latin letters to ASCII; punctuation stays Chinese.

    >>> [narrow(word) for word in ("１９９８年", "３．５％", "ＣＤ", "，")]
    ['1998年', '3.5%', 'CD', '，']
    """
    return word.translate(_NARROW) if _WIDE.search(word) else word


def write_parts(articles: Iterable[Sentences], out: Path) -> tuple[int, int]:
    """Write articles to two files; return the number in each."""
    counts = [0, 0]
    with (
        (out / "train.txt").open("w", encoding="utf-8", newline="\n") as train,
        (out / "heldout.txt").open("w", encoding="utf-8", newline="\n") as heldout,
    ):
        for index, article in enumerate(articles):
            is_heldout = index % HELDOUT_ARTICLE == HELDOUT_ARTICLE - 1
            lines = "".join(" ".join(sentence) + "\n" for sentence in article)
            (heldout if is_heldout else train).write(lines + "\n")
            counts[is_heldout] += 1
    return counts[0], counts[1]


def main() -> None:
    """Read the arguments and write two files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, nargs="+")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    if arguments.out.is_file():
        parser.error(f"{arguments.out} is a file; name the folder to write to last")
    try:
        articles = read_corpus(arguments.corpus)
    except ElmoreError as error:
        print(f"elmore: {error}", file=sys.stderr)
        sys.exit(2)
    arguments.out.mkdir(parents=True, exist_ok=True)
    num_train, num_heldout = write_parts(articles, arguments.out)
    print(f"{num_train:,} articles to train on, {num_heldout:,} held out")


if __name__ == "__main__":
    main()

"""Small texts and their indexes, for tests."""

import numpy as np

from elmore.embed.embedder import Embedder
from elmore.explore.build_index import build_index
from elmore.explore.use_index import open_index
from tests import tiny

BOOK = """The bank of the river. A bank is a bank.

Bank holidays are rare here. He sat on the Bank.
"""
NEWS = "the bank raised its rates\n\nno such word\nthe river bank\n"
TAGGED = """# newdoc
1\tBears\tbear\tNOUN\t_\t_\t_\t_\t_\t_
2\tbear\tbear\tVERB\t_\t_\t_\t_\t_\t_
3\tfruit\tfruit\t_\t_\t_\t_\t_\t_\t_

# newdoc
1\ta\ta\tDET\t_\t_\t_\t_\t_\t_
2\tbear\tbear\tNOUN\t_\t_\t_\t_\t_\t_
"""
# The sentences of the three files, as they should be read.
SENTENCES = [
    ("book.txt", 0, 1, "The bank of the river ."),
    ("book.txt", 0, 1, "A bank is a bank ."),
    ("book.txt", 1, 3, "Bank holidays are rare here ."),
    ("book.txt", 1, 3, "He sat on the Bank ."),
]
TAGGED_SENTENCES = [
    ("tagged.conllu", 0, 2, "Bears bear fruit"),
    ("tagged.conllu", 1, 7, "a bear"),
]


def make_embedder(**settings):
    return Embedder(tiny.model(scale=0.4), **settings)


def write_texts(folder):
    (folder / "book.txt").write_text(BOOK)
    (folder / "news.txt").write_text(NEWS)
    (folder / "tagged.conllu").write_text(TAGGED)


def make_index(folder, embedder, *names, out="index", **options):
    build_index([folder / name for name in names], folder / out, model=embedder, **options)
    return open_index(folder / out)


def make_large_text(num_sentences=60, seed=0):
    """Return lines of made-up words, many of them repeated."""
    generator = np.random.default_rng(seed)
    words = ["bank", "Bank", "river", "money", "sat", "the", "of", *map(str, range(20))]
    lines = [
        " ".join(generator.choice(words, size=generator.integers(1, 9)))
        for _ in range(num_sentences)
    ]
    return "\n".join(lines) + "\n"


def read_all(folder):
    """Return the content of every file of an index."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

"""Build the example index that comes with elmore, from texts/ and the English model.

    python recipes/example_index/build.py

Run it again whenever the English model changes: an index belongs to its model.
"""

import os
import shutil
from pathlib import Path

from cut_text import WORDS

import elmore

FOLDER = Path(__file__).parent
TEXTS = FOLDER / "texts"
OUT = FOLDER.parents[1] / "src" / "elmore" / "explore" / "example"

README = """# Example index

Uses of {words} in sentences from the books below. All were written in English and
published before 1929, so they are in the public domain in the United States.

{books}

`python recipes/example_index/build.py` builds it again.
"""


def main() -> None:
    """Write the index and the list of books."""
    shutil.rmtree(OUT, ignore_errors=True)
    names = sorted(path.name for path in TEXTS.glob("*.txt"))
    os.chdir(TEXTS)  # so that sources are called by the name of the book
    report = elmore.build_index(names, OUT, words=WORDS, form="lines")
    words = f"{', '.join(WORDS[:-1])} and {WORDS[-1]}"
    books = "\n".join(f"- {name.removesuffix('.txt')}" for name in names)
    (OUT / "README.md").write_text(README.format(words=words, books=books), encoding="utf-8")
    print(f"{OUT}: {report.num_sentences:,} sentences, {report.num_bytes / 1e6:.2f} MB")


if __name__ == "__main__":
    main()

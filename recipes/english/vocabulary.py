"""Measure which share of held-out text a vocabulary of some size does not cover.

    python -m recipes.english.vocabulary CORPUS OUT.json [--sizes 50000 80000 120000]

CORPUS was prepared with `--heldout-text` and at least as many words as the largest size. A smaller
vocabulary is the beginning of a larger one, because words are sorted by frequency.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from elmore.corpus.corpus import open_corpus
from elmore.corpus.part import CorpusPart
from elmore.corpus.sources import split_by_input


def count_tokens(part: CorpusPart) -> Counter[str]:
    """Count the tokens of a part."""
    return Counter(
        token for document in part.documents() for sentence in document for token in sentence
    )


def find_unknown_share(counts: Counter[str], words: set[str]) -> float:
    """Return the share of tokens that are not among `words`."""
    return sum(count for token, count in counts.items() if token not in words) / counts.total()


def main() -> None:
    """Read the arguments, write the file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50_000, 80_000, 120_000])
    arguments = parser.parse_args()
    corpus = open_corpus(arguments.corpus)
    num_words = len(corpus.vocabulary) - 3  # without the markers and the unknown word
    if max(arguments.sizes) > num_words:
        raise SystemExit(
            f"{arguments.corpus} has {num_words:,} words; prepare it again with --max-words "
            f"{max(arguments.sizes)}"
        )
    known = {size: set(corpus.vocabulary[: size + 3]) for size in arguments.sizes}
    results = {}
    for name, part in split_by_input(corpus, corpus.heldout).items():
        counts = count_tokens(part)
        results[name.removeprefix("heldout_")] = {
            "tokens": counts.total(),
            "unknown": {
                str(size): find_unknown_share(counts, words) for size, words in known.items()
            },
        }
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    print("source", "tokens", *arguments.sizes, sep="\t")
    for name, found in results.items():
        shares = [f"{100 * share:.1f} %" for share in found["unknown"].values()]
        print(name, f"{found['tokens']:,}", *shares, sep="\t")


if __name__ == "__main__":
    main()

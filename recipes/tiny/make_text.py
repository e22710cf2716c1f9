"""Write English sentences from a small grammar, in which the context determines a word's sense.

    python recipes/tiny/make_text.py OUT [--sentences 30000] [--seed 1]

OUT gets one sentence per line, tokens separated by spaces, a blank line between documents. The
same seed gives the same text everywhere. grammar.toml has the words.
"""

import argparse
import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GRAMMAR = Path(__file__).with_name("grammar.toml")
SENTENCES_PER_DOCUMENT = 20
PLAIN_SHARE = 0.1
"""Fraction of sentences without an ambiguous word."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """The tokens and their ambiguous word; a plain sentence has none."""

    tokens: list[str]
    word: str | None = None
    sense: str | None = None
    position: int | None = None  # of the word
    clues: frozenset[str] = frozenset()  # words that determine the sense, as in grammar.toml


class Grammar:
    """Fillers for slots, and the contexts of each ambiguous word."""

    def __init__(self, path: Path = GRAMMAR) -> None:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        self.choices: dict[str, list[str]] = tables.pop("choices")
        self.around: dict[str, list[str]] = tables.pop("around")
        self.noun: dict[str, list[str]] = tables.pop("noun")
        self.plain: list[str] = tables.pop("plain")["clauses"]
        self.senses: dict[str, dict[str, dict[str, list[str]]]] = tables

    def make_sentence(self, draw: random.Random) -> Sentence:
        """Choose a word, then a sense, so that no sense is rare; sometimes choose none."""
        if draw.random() < PLAIN_SHARE:
            tokens, _ = self._write(draw.choice(self.plain), "", draw)
            return Sentence(tokens=tokens)
        word = draw.choice(list(self.senses))
        sense = draw.choice(list(self.senses[word]))
        before, behind, clues = self._draw_context(self.senses[word][sense], draw)
        tokens, position = self._write(f"{before} {word}", behind, draw)
        return Sentence(tokens=tokens, word=word, sense=sense, position=position, clues=clues)

    def _draw_context(
        self, sense: dict[str, list[str]], draw: random.Random
    ) -> tuple[str, str, frozenset[str]]:
        """Return the left and right context, and the words in it that determine the sense."""
        before, behind = draw.choice(sense["before"]), draw.choice(sense["behind"])
        if "kind" not in sense:
            return before, behind, frozenset([before, behind])
        kind = draw.choice(["", draw.choice(sense["kind"])])
        match draw.choice(["left", "right", "both", "both", "both", "subject"]):
            case "left":
                left, right, clues = before, "", [before, kind]
            case "right":
                left, right, clues = draw.choice(self.noun["before"]), behind, [behind, kind]
            case "both":
                left, right, clues = before, behind, [before, behind, kind]
            case _:
                does = draw.choice(sense["does"])
                left, right, clues = draw.choice(self.noun["subject"]), does, [does, kind]
        return f"{left} {kind}", right, frozenset(filter(None, clues))

    def _write(self, left: str, right: str, draw: random.Random) -> tuple[list[str], int]:
        """Return the tokens of a sentence, and the position of the last one of `left`."""
        before = self._fill(f"{draw.choice(self.around['opening'])} {left}", draw)
        behind = self._fill(f"{right} {draw.choice(self.around['closing'])} .", draw)
        before[0] = before[0][0].upper() + before[0][1:]
        return before + behind, len(before) - 1

    def _fill(self, text: str, draw: random.Random) -> list[str]:
        """Return the tokens of a text, with a filler for each slot."""
        tokens = []
        for symbol in text.split():
            if symbol.startswith("{"):
                tokens += self._fill(draw.choice(self.choices[symbol[1:-1]]), draw)
            else:
                tokens.append(symbol)
        return tokens


def make_sentences(*, num_sentences: int, seed: int) -> Iterator[Sentence]:
    """Yield sentences that depend only on the seed."""
    grammar, draw = Grammar(), random.Random(seed)
    for _ in range(num_sentences):
        yield grammar.make_sentence(draw)


def main() -> None:
    """Read the arguments and write the text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sentences", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with arguments.out.open("w", encoding="utf-8", newline="\n") as file:
        sentences = make_sentences(num_sentences=arguments.sentences, seed=arguments.seed)
        for index, sentence in enumerate(sentences):
            if index and index % SENTENCES_PER_DOCUMENT == 0:
                file.write("\n")
            file.write(" ".join(sentence.tokens) + "\n")


if __name__ == "__main__":
    main()

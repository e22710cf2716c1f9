"""What the input says about each stored entry: its line, its id, its file, kept positions.

These are not in the chunks of a job, because a resumed job reads its input again.
"""

from array import array
from collections.abc import Iterable, Iterator

from elmore.config import StatePolicy
from elmore.embed.output_choice import OutputChoice
from elmore.embed.record_keys import RecordKeys
from elmore.embed.vector_file import SentenceVectors
from elmore.errors import ConfigError
from elmore.text.inputs import GivenSentence, parse_given
from elmore.text.language import Language
from elmore.text.line_sentences import NumberedSentence


class SentenceNotes:
    """Facts about the entries that will be stored, in order."""

    def __init__(self, choice: OutputChoice, *, state: StatePolicy) -> None:
        self._choice = choice
        self._lines = array("q")
        self._keys = RecordKeys(state=state)
        self._sources: list[str | None] = []  # one per entry; most are the same object
        self._positions = array("q")
        self._position_ends = array("q")
        self._is_in_document = False

    def read(
        self, sentences: Iterable[GivenSentence], *, language: Language
    ) -> Iterator[list[str]]:
        """Yield the tokens of each sentence, and note what will be stored with its vectors."""
        for position, sentence in enumerate(sentences, start=1):
            tokens = parse_given(sentence, language=language)
            if self._starts_entry(tokens):
                self._note(sentence, tokens, position=position)
            yield tokens

    def attach(self, stored: Iterable[SentenceVectors]) -> Iterator[SentenceVectors]:
        """Yield the entries with what was noted."""
        start = 0
        for number, entry in enumerate(stored):
            positions = None
            if self._choice.words is not None:
                end = self._position_ends[number]
                positions, start = self._positions[start:end].tolist(), end
            yield SentenceVectors(
                tokens=entry.tokens,
                vectors=entry.vectors,
                line=self._lines[number],
                key=self._keys.find(number),
                source=self._sources[number],
                positions=positions,
            )

    def _starts_entry(self, tokens: list[str]) -> bool:
        """Return whether a new entry starts with this sentence."""
        if self._choice.pools_documents:
            starts = bool(tokens) and not self._is_in_document
            self._is_in_document = bool(tokens)
            return starts
        return self._choice.words is None or bool(self._choice.find_kept(tokens))

    def _note(self, sentence: GivenSentence, tokens: list[str], *, position: int) -> None:
        facts = sentence if isinstance(sentence, NumberedSentence) else None
        self._lines.append(position if facts is None else facts.line)
        self._sources.append(None if facts is None else facts.source)
        if facts is not None and facts.key is not None:
            if self._choice.pools_documents:
                raise ConfigError(
                    "in FASTA every record is a document of its own, so pooling per document and "
                    "per sentence are the same; pool per sentence"
                )
            self._keys.add(facts.key, line=facts.line)
        if self._choice.words is not None:
            self._positions.extend(self._choice.find_kept(tokens))
            self._position_ends.append(len(self._positions))

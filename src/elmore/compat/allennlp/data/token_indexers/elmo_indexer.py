"""Convert tokens to character ids, 1 higher than the bytes because 0 is padding."""

from collections.abc import Mapping

from elmore import ByteAlphabet

__all__ = ["ELMoCharacterMapper"]

MAX_WORD_LENGTH = 50
ALPHABET = ByteAlphabet(max_chars=MAX_WORD_LENGTH, splits_characters=True)


class ELMoCharacterMapper:
    """Spells tokens; `tokens_to_add` gives special tokens a character id of their own."""

    max_word_length = MAX_WORD_LENGTH
    beginning_of_sentence_character = 256
    end_of_sentence_character = 257
    beginning_of_word_character = 258
    end_of_word_character = 259
    padding_character = 260
    beginning_of_sentence_characters: list[int] = ALPHABET.spell_begin().tolist()
    end_of_sentence_characters: list[int] = ALPHABET.spell_end().tolist()
    bos_token = "<S>"
    eos_token = "</S>"

    def __init__(self, tokens_to_add: Mapping[str, int] | None = None) -> None:
        self.tokens_to_add = tokens_to_add or {}

    def convert_word_to_char_ids(self, word: str) -> list[int]:
        """Return 50 ids from 1 to 261."""
        added = self.tokens_to_add.get(word)
        ids = ALPHABET.spell(word if added is None else "?")
        if added is not None:
            ids[1] = added
        return (ids + 1).tolist()

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if isinstance(self, type(other)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

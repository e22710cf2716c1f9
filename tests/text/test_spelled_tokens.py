import pytest
import torch

from elmore.errors import DataError
from elmore.text.batches import Speller
from elmore.text.characters import ByteAlphabet
from elmore.text.spelled_tokens import SpelledTokenReader
from tests import tiny

ALPHABET = ByteAlphabet(max_chars=6)


def pad_ids(*sentences):
    """Return padded ids, 1 higher than the alphabet's."""
    longest = max(map(len, sentences))
    ids = torch.zeros(len(sentences), longest, 6, dtype=torch.int64)
    for row, sentence in enumerate(sentences):
        for column, token in enumerate(sentence):
            ids[row, column] = torch.from_numpy(ALPHABET.spell(token)) + 1
    return ids


def test_spelled_tokens_have_the_ids_that_were_given():
    reader = SpelledTokenReader(Speller(alphabet=ALPHABET, words=None))
    first, second, third = reader.split(pad_ids(["ab", "", "é"], ["ab"], []))
    assert first[0] == second[0]
    assert (len(first), len(second), third) == (3, 1, [])
    found = reader.spell(first, with_markers=True).char_ids
    tokens = ["<S>", "</S>", "ab", "", "é"]
    assert found.tolist() == ALPHABET.spell_all(tokens).tolist()


def test_a_zero_inside_a_token_is_not_a_character():
    reader = SpelledTokenReader(Speller(alphabet=ALPHABET, words=None))
    ids = pad_ids(["ab"])
    ids[0, 0, 1:3] = ids[0, 0, 5] = 0
    (tokens,) = reader.split(ids)
    assert reader.spell(tokens).char_ids.tolist() == [[258, 261, 261, 259, 260, 261]]


def test_a_model_with_words_cannot_read_ids():
    with pytest.raises(DataError, match="needs words"):
        SpelledTokenReader(tiny.model(tiny.word_and_char_config()).speller)

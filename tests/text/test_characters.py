import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmore.errors import ModelError
from elmore.text.characters import ByteAlphabet, CharacterAlphabet
from tests import reference, tiny

any_text = st.text(st.characters(exclude_categories=()), max_size=60)
alphabet = CharacterAlphabet({unit: n for n, unit in enumerate(tiny.LETTERS)}, max_chars=8)


@given(any_text, st.integers(3, 60))
def test_bytes_are_those_of_bilm_tf(token, max_chars):
    ids = ByteAlphabet(max_chars=max_chars, splits_characters=True).spell(token)
    assert ids.tolist() == reference.bilm_tf_char_ids(token, max_chars=max_chars)


odd_tokens = st.lists(
    any_text | st.sampled_from(["", "<S>", "</S>", "<bos>", "<eos>", "\ud800", "éé🙂", "x" * 99]),
    max_size=8,
)


@given(odd_tokens, st.integers(3, 12), st.booleans())
def test_tokens_are_spelled_together_as_they_are_alone(tokens, max_chars, splits_characters):
    letters = {unit: n for n, unit in enumerate(tiny.LETTERS)}
    for alphabet in (
        ByteAlphabet(max_chars=max_chars, splits_characters=splits_characters),
        CharacterAlphabet(letters, max_chars=max_chars),
    ):
        ids = alphabet.spell_all(tokens)
        assert ids.shape == (len(tokens), max_chars)
        assert ids.dtype == np.int64
        assert ids.tolist() == [alphabet.spell(token).tolist() for token in tokens]


@given(any_text, st.integers(3, 12))
def test_our_own_models_never_split_a_character(token, max_chars):
    ids = ByteAlphabet(max_chars=max_chars).spell(token)
    content = bytes(ids[(ids < 256)].astype("uint8").tolist())
    assert len(ids) == max_chars
    assert token.encode("utf-8", "ignore").decode().startswith(content.decode())  # no error


@pytest.mark.parametrize(
    ("token", "content"),
    [
        ("", []),
        (" ", [32]),
        ("\0", [0]),
        ("\ud800", []),
        ("a\udfffb", [97, 98]),
        ("e\u0301", [101, 0xCC, 0x81]),
        ("\u00e9", [0xC3, 0xA9]),
        ("🙂", [0xF0, 0x9F, 0x99, 0x82]),
        ("x" * 10_000, [120] * 6),
    ],
)
def test_odd_tokens_have_defined_bytes(token, content):
    """Precomposed and combining forms differ: text is taken as it is, never normalized."""
    ids = ByteAlphabet(max_chars=8).spell(token).tolist()
    assert ids == [258, *content, 259] + [260] * (6 - len(content))


def test_the_marks_of_a_sentence_are_tokens_too():
    bytes_ = ByteAlphabet(max_chars=5)
    assert (
        bytes_.spell("<S>").tolist() == bytes_.spell_begin().tolist() == [258, 256, 259, 260, 260]
    )
    assert bytes_.spell("</S>").tolist() == bytes_.spell_end().tolist() == [258, 257, 259, 260, 260]


@given(any_text)
def test_characters_are_those_of_elmoformanylangs(token):
    ids = {unit: n for n, unit in enumerate(tiny.LETTERS)}
    wanted = reference.many_langs_char_ids(token[:6], char_dic=ids, max_chars=8)
    assert alphabet.spell(token).tolist() == wanted


def test_the_marks_of_a_token_are_swapped_as_in_the_published_models():
    oov, bos, eos, bow, eow, pad = range(6)
    assert alphabet.spell("a?").tolist() == [eow, 6, oov, bow, pad, pad, pad, pad]
    assert alphabet.spell("<bos>").tolist() == [eow, bos, bow] + [pad] * 5
    assert alphabet.spell("<eos>").tolist() == [eow, eos, bow] + [pad] * 5


def test_a_list_without_its_marks_is_refused():
    with pytest.raises(ModelError, match="lacks '<oov>'"):
        CharacterAlphabet({"a": 0}, max_chars=8)

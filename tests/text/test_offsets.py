"""Offsets point at the tokens, whatever is between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmore.text.language import Language
from elmore.text.offsets import find_offsets
from elmore.text.tokens import split_tokens


@given(st.text(max_size=60))
@pytest.mark.parametrize("language", [Language.EN, Language.ZH_CHARS])
def test_offsets_cut_the_tokens_out_of_any_text(language, text):
    tokens = split_tokens(text, language=language)
    offsets = find_offsets(text, tokens)
    assert [text[start:end] for start, end in offsets] == tokens
    ends = [0, *(end for _, end in offsets)]
    between = [text[end:start] for end, (start, _) in zip(ends, offsets, strict=False)]
    assert all(gap.strip() == "" for gap in between)


def test_repeated_tokens_have_their_own_offsets():
    assert find_offsets("a  a\na", ["a", "a", "a"]) == [(0, 1), (3, 4), (5, 6)]

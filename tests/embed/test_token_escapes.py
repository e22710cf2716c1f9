from hypothesis import given
from hypothesis import strategies as st

from elmore.embed.token_escapes import escape_token, join_escaped, split_escaped, unescape_token

# Half of the characters are those that some format cannot store, or that escaping uses itself.
characters = st.sampled_from("\0\t\n\r\\ e0tu\x85\u2028\ud83d\ude00\udfff") | st.characters(
    exclude_categories=()
)
tokens = st.text(characters, max_size=5)


@given(token=tokens)
def test_escaped_tokens_can_be_stored_anywhere(token):
    escaped = escape_token(token)
    assert not set(escaped) & set("\0\t\n\r")
    assert escaped
    escaped.encode()
    assert unescape_token(escaped) == token


@given(tokens=st.lists(tokens))
def test_a_line_gives_back_its_tokens(tokens):
    assert split_escaped(join_escaped(tokens)) == tokens


def test_escapes_are_those_the_manual_shows():
    assert join_escaped(["a\0", "\t", "\\", "\ud83d", "", "\r\n"]) == (
        "a\\0\t\\t\t\\\\\t\\ud83d\t\\e\t\\r\\n"
    )


def test_a_blank_line_is_not_a_token_and_not_an_empty_one():
    assert (join_escaped([]), join_escaped([""])) == ("", r"\e")

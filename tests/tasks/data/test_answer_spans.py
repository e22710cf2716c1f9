import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.tasks.data.answer_spans import Fit, align_answer, find_offsets
from elmore.text.sentences import split_sentences
from elmore.text.tokens import split_tokens

TEXT = "In 1973 oil rose by 7 %. Its price (US$3) did n't: oil"
TOKENS = ["In", "1973", "oil", "rose", "by", "7", "%", ".", "Its", "price", "(", "US$3", ")", "did"]
TOKENS += ["n't", ":", "oil"]


def align_slowly(text, offsets, answer, start):
    """Try every span of tokens, and every place of the answer."""
    places = [place for place in range(len(text)) if text.startswith(answer, place)]
    around = f" {text} "[start : start + 1] + f" {text} "[start + len(answer) + 1 :][:1]
    is_meant = start in places and not any(char.isalnum() for char in around)
    exact = [
        (abs(offsets[first][0] - start), offsets[first][0], (first, last + 1))
        for first in range(len(offsets))
        for last in range(first, len(offsets))
        if text[offsets[first][0] : offsets[last][1]] == answer
        and (not is_meant or offsets[first][0] == start)
    ]
    if exact:
        _, place, span = min(exact)
        return span, Fit.GIVEN if place == start else Fit.MOVED
    if not places:
        return None, Fit.MISSING
    place = min(places, key=lambda place: (abs(place - start), place))
    touched = [
        number
        for number, (first, last) in enumerate(offsets)
        if first < place + len(answer) and place < last
    ]
    return (touched[0], touched[-1] + 1), Fit.WIDENED


@settings(deadline=None)
@given(st.text())
def test_nothing_but_whitespace_is_between_tokens(text):
    tokens = [token for sentence in split_sentences(text) for token in split_tokens(sentence)]
    offsets = find_offsets(text, tokens)
    assert [text[start:end] for start, end in offsets] == tokens
    edges = [0, *(edge for offset in offsets for edge in offset), len(text)]
    assert "".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)).strip() == ""


@pytest.mark.parametrize(
    ("answer", "start", "span", "fit"),
    [
        ("oil", 8, (2, 3), Fit.GIVEN),
        ("oil", 51, (16, 17), Fit.GIVEN),
        ("oil", 50, (16, 17), Fit.MOVED),
        ("oil", 0, (2, 3), Fit.MOVED),
        ("7", 5, (5, 6), Fit.MOVED),  # not the 7 of 1973
        (" 7 %", 19, (5, 7), Fit.GIVEN),
        ("$3", 37, (11, 12), Fit.WIDENED),
        ("3", 38, (11, 12), Fit.WIDENED),  # and not the 3 of 1973, which is no better
        ("did n't", 42, (13, 15), Fit.GIVEN),
        ("gas", 8, None, Fit.MISSING),
    ],
)
def test_answers_found_by_hand(answer, start, span, fit):
    offsets = find_offsets(TEXT, TOKENS)
    assert [TEXT[first:last] for first, last in offsets] == TOKENS
    assert align_answer(TEXT, offsets, answer=answer, start=start) == (span, fit)


def test_occurrences_may_overlap():
    offsets = find_offsets("so so so", ["so", "so", "so"])
    found = [align_answer("so so so", offsets, answer="so so", start=place) for place in (0, 3)]
    assert found == [((0, 2), Fit.GIVEN), ((1, 3), Fit.GIVEN)]


@settings(deadline=None)
@given(st.text("ab .", min_size=1, max_size=30), st.data())
def test_answers_are_those_of_trying_every_span(text, data):
    tokens = split_tokens(text)
    offsets = find_offsets(text, tokens)
    part = st.integers(0, len(text)).flatmap(
        lambda start: st.integers(start, len(text)).map(lambda end: text[start:end])
    )
    answer = (
        data.draw(part.filter(str.strip) | st.text("ab", min_size=1, max_size=3)).strip() or "c"
    )
    start = data.draw(st.integers(-2, len(text) + 2))
    wanted = align_slowly(text, offsets, answer, start)
    assert align_answer(text, offsets, answer=answer, start=start) == wanted

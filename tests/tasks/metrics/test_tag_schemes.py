import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.errors import DataError, DataWarning
from elmore.tasks.metrics.tag_schemes import (
    SchemeGuess,
    Span,
    TagScheme,
    find_wrong_tag,
    read_spans,
    write_tags,
)


def guess_scheme(sentences, name="the corpus"):
    guess = SchemeGuess()
    for number, tags in enumerate(sentences, start=1):
        guess.add(
            tags,
            name_position=lambda token, number=number: (
                f"{name}, sentence {number}, token {token + 1}"
            ),
        )
    return guess.find_best(name=name)


IOB_TAGS = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", "B-C-X", "I-C-X", "B", "I"])


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        (TagScheme.IOB1, "I-X I-X B-X O I-Y I-X I-X O I"),
        (TagScheme.IOB2, "B-X I-X B-X O B-Y B-X I-X O B"),
        (TagScheme.BIOES, "B-X E-X S-X O S-Y B-X E-X O S"),
        (TagScheme.BILOU, "B-X L-X U-X O U-Y B-X L-X O U"),
    ],
)
def test_each_scheme_writes_the_same_spans_in_its_way(scheme, tags):
    spans = [Span(0, 2, "X"), Span(2, 3, "X"), Span(4, 5, "Y"), Span(5, 7, "X"), Span(8, 9, "")]
    assert write_tags(reversed(spans), num_tokens=9, scheme=scheme) == tags.split()
    assert read_spans(tags.split()) == spans
    assert find_wrong_tag(tags.split(), spans, scheme) is None
    assert guess_scheme([["O"], tags.split()]) is scheme


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    tags=st.lists(IOB_TAGS, max_size=10),
    source=st.sampled_from(TagScheme),
    target=st.sampled_from(TagScheme),
)
def test_converting_keeps_every_span_and_goes_back(tags, source, target):
    spans = read_spans(tags)
    written = write_tags(spans, num_tokens=len(tags), scheme=source)
    converted = write_tags(read_spans(written), num_tokens=len(tags), scheme=target)
    assert read_spans(converted) == spans
    assert write_tags(read_spans(converted), num_tokens=len(tags), scheme=source) == written
    assert find_wrong_tag(converted, spans, target) is None
    if spans:
        assert guess_scheme([written]) is source


@pytest.mark.parametrize(
    ("scheme", "tags", "token", "wanted"),
    [
        (TagScheme.IOB1, "O B-X", 2, "I-X"),
        (TagScheme.IOB1, "I-X B-Y", 2, "I-Y"),
        (TagScheme.IOB2, "O I-X", 2, "B-X"),
        (TagScheme.IOB2, "B-X I-Y I-Y", 2, "B-Y"),
        (TagScheme.IOB2, "B-X E-X", 2, "I-X"),
        (TagScheme.BIOES, "O E-X", 2, "S-X"),
        (TagScheme.BIOES, "B-X O", 1, "S-X"),
        (TagScheme.BIOES, "S-X B-X I-X", 3, "E-X"),
        (TagScheme.BIOES, "B-X I-X B-X E-X", 2, "E-X"),
        (TagScheme.BIOES, "B-X E-Y", 1, "S-X"),
        (TagScheme.BIOES, "B-X I-X I-X O-X", 3, "E-X"),
        (TagScheme.BILOU, "B-X I-X E-X", 3, "L-X"),
        (TagScheme.BILOU, "O O-X", 2, "O"),
    ],
)
def test_the_first_invalid_tag_is_found_with_the_expected_one(scheme, tags, token, wanted):
    found = find_wrong_tag(tags.split(), read_spans(tags.split()), scheme)
    assert found == (token - 1, wanted)


def test_a_corpus_with_errors_has_the_scheme_of_most_sentences():
    sentences = [["O"], ["O", "I-X"], ["B-X", "I-X"], ["B-X", "B-X"], ["O"]]
    with pytest.warns(DataWarning, match=r"sentence 2, token 2: 'I-X' where .*; in total, 1 of 3"):
        assert guess_scheme(iter(sentences)) is TagScheme.IOB2


def test_a_corpus_of_two_schemes_is_refused_with_a_position_where_they_differ():
    sentences = [["O"], ["B-X", "I-X"], ["O", "I-X"], ["O"], ["I-X"], ["B-X"]]
    with pytest.raises(DataError) as caught:
        guess_scheme(iter(sentences), name="my.conll")
    assert "the tags of my.conll follow no scheme" in str(caught.value)
    assert "only 2 of 4 sentences" in str(caught.value)
    assert "my.conll, sentence 2, token 1: 'B-X' where iob1 expects 'I-X'" in str(caught.value)


@pytest.mark.parametrize("sentences", [[], [[]], [["O", "O"], ["O"]]])
def test_a_corpus_without_spans_has_no_scheme(sentences):
    with pytest.raises(DataError, match=r"my\.conll has no span"):
        guess_scheme(sentences, name="my.conll")


@pytest.mark.parametrize(
    "spans",
    [
        [Span(0, 2, "X"), Span(1, 3, "X")],
        [Span(2, 2, "X")],
        [Span(2, 4, "X")],
        [Span(-1, 1, "X")],
    ],
)
def test_spans_that_no_tags_can_hold_are_refused(spans):
    with pytest.raises(ValueError, match="overlaps"):
        write_tags(spans, num_tokens=3, scheme=TagScheme.IOB2)

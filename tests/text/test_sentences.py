import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.text.language import Language
from elmore.text.sentences import split_sentences

ODD_TEXT = st.text(
    st.one_of(
        st.sampled_from(" \n\r\t.?!…।؟。！？；”\"')」A1é中\u0301\u200d\x00\u2028"), st.characters()
    ),
    max_size=60,
)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Mr. Bell rang. Who answered?", ["Mr. Bell rang.", "Who answered?"]),
        ("She went to the U.S. last year.", ["She went to the U.S. last year."]),
        ('"I can\'t." He left!', ['"I can\'t."', "He left!"]),
        ("It cost the king 8s.; he paid. Then", ["It cost the king 8s.; he paid.", "Then"]),
        ("A line\nwrapped by hand.", ["A line\nwrapped by hand."]),
        ("A heading\n \nThen text", ["A heading", "Then text"]),
        ("यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"]),
        ("هل جاء؟ نعم جاء.", ["هل جاء؟", "نعم جاء."]),
        ("  \n\t ", []),
        ("", []),
    ],
)
def test_spaced_scripts_are_split_where_a_reader_would(text, sentences):
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("你好。再见！真的？", ["你好。", "再见！", "真的？"]),
        ("他说：“走吧。”她走了。", ["他说：“走吧。”", "她走了。"]),
        ("（真的！）好……", ["（真的！）", "好……"]),
        ("一；二，三。", ["一；二，三。"]),
        ("标题\n正文\r\n完", ["标题", "正文", "完"]),
        ("什么?! 看 a.cn/?p=2 吧", ["什么?!", "看 a.cn/?p=2 吧"]),
        ("", []),
    ],
)
def test_chinese_is_split_after_its_stops_and_closing_marks(text, sentences):
    assert split_sentences(text, language=Language.ZH) == sentences
    assert split_sentences(text, language=Language.ZH_CHARS) == sentences


@pytest.mark.parametrize("language", Language)
@settings(max_examples=200, deadline=None)
@given(text=ODD_TEXT)
def test_only_whitespace_is_lost(language, text):
    sentences = split_sentences(text, language=language)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["?", ".)", "a", ". ", "A. ", "\n", "。”"])
@pytest.mark.parametrize("language", Language)
def test_garbage_takes_seconds_not_hours(language, unit):
    started = time.process_time()
    split_sentences(unit * (300_000 // len(unit)) + " Go.", language=language)
    assert time.process_time() - started < 5


def test_text_after_a_long_run_is_still_split():
    url = "http://a.b/" + "?" * 600 + "."
    assert split_sentences(f"See {url} Then stop. Go.") == [f"See {url}", "Then stop.", "Go."]


def test_a_language_may_be_given_by_its_name():
    assert split_sentences("好。好。", language="zh") == ["好。", "好。"]

import re
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.errors import DataError, MissingExtraError
from elmore.text.language import Language
from elmore.text.tokens import _chunk_pattern, _chunk_rules, parse_sentence, split_tokens

ODD_TEXT = st.text(
    st.one_of(
        st.sampled_from(
            " .,'’-_@#+:/()!?$&snt1Az\u0301\u093f\u200d\u200c\ufe0f👩🏽🇩\x00\x1f\u2028\u3000中"
        ),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)

SPLIT = [  # the sentence, and its tokens with a space between
    ("I don't; she's here, they'll go.", "I do n't ; she 's here , they 'll go ."),
    (
        "WE'RE sure I'd've said I'm in, you've not",
        "WE 'RE sure I 'd 've said I 'm in , you 've not",
    ),
    ("can’t, she’s", "ca n’t , she ’s"),
    ("We cannot; they do n't.", "We cannot ; they do n't ."),
    ("O'Brien's rock 'n' roll in the '90s", "O'Brien 's rock 'n' roll in the '90s"),
    ("the workers' 'own' l'homme", "the workers ' ' own ' l'homme"),
    ("Get 'em, 'tis late", "Get 'em , 'tis late"),
    ("In the U.S. and in the U.S.", "In the U.S. and in the U.S."),
    ("The U.S.'s U.S.-based firms", "The U.S. 's U.S.-based firms"),
    ("Mr. Fox, e.g., left at 5 p.m.", "Mr. Fox , e.g. , left at 5 p.m."),
    ("J. Fox had plan B.", "J. Fox had plan B ."),
    ("So do I. Go", "So do I . Go"),
    ("No. 5 said no.", "No. 5 said no ."),
    ("On Sun. he saw the Sun.", "On Sun. he saw the Sun ."),
    ('He said "stop."', 'He said " stop . "'),
    ("(He saw the Sun.)", "( He saw the Sun . )"),
    ("3.14, 1,000 at 10:30 on 9/11: -5 or .5.", "3.14 , 1,000 at 10:30 on 9/11 : -5 or .5 ."),
    ("$3.50 is 50% (about)", "$ 3.50 is 50 % ( about )"),
    (
        "See https://a.org/b_(c)?d=1#e, or www.a.org.",
        "See https://a.org/b_(c)?d=1#e , or www.a.org .",
    ),
    ("<http://a.b>, a.com.", "< http://a.b > , a.com ."),
    ("Ask jo.fox+x@mail.co.uk.", "Ask jo.fox+x@mail.co.uk ."),
    ("a well-known two-year-old-- no -- yes", "a well-known two-year-old -- no -- yes"),
    ("#tag @a_name! #1", "#tag @a_name ! # 1"),
    ("Wait... what?! Yes….", "Wait ... what ?! Yes … ."),
    ("and/or AT&T snake_case _so_ **", "and / or AT&T snake_case _ so _ **"),
    ("fine :-) ``so''", "fine :-) `` so ''"),
    ("हिन्दी में लिखा है।", "हिन्दी में लिखा है ।"),
    ("العَرَبِيَّة، слово́ می‌خواهم", "العَرَبِيَّة ، слово́ می‌خواهم"),
    ("e\u0301te\u0301's", "e\u0301te\u0301 's"),
    ("👩‍👩‍👧‍👦!👍🏽🇩🇪🇫🇷1️⃣☺️", "👩‍👩‍👧‍👦 ! 👍🏽 🇩🇪 🇫🇷 1️⃣ ☺️"),
    ("a\x00b \x07", "a \x00 b \x07"),
    ("a\ud800b", "a \ud800 b"),
    ("", ""),
]


@pytest.mark.parametrize(("sentence", "tokens"), SPLIT)
def test_a_sentence_is_split_as_the_treebank_does(sentence, tokens):
    assert split_tokens(sentence) == tokens.split()


@pytest.mark.parametrize("tokens", [tokens for _, tokens in SPLIT])
def test_tokens_are_not_split_again(tokens):
    assert split_tokens(tokens) == tokens.split()


@pytest.mark.parametrize("language", Language)
@settings(max_examples=400, deadline=None)
@given(sentence=ODD_TEXT)
def test_no_character_is_changed_or_lost(language, sentence):
    tokens = split_tokens(sentence, language=language)
    assert "".join(tokens) == "".join(sentence.split())
    assert all(tokens)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(sentence=ODD_TEXT | st.text(" ,.a1'é-\u0301\t", max_size=30))
def test_the_shortcuts_for_common_tokens_agree_with_the_rules(sentence):
    assert _chunk_pattern().findall(sentence) == re.findall(_chunk_rules(), sentence)


@settings(max_examples=300, deadline=None)
@given(
    letters=st.text("aжक", min_size=1, max_size=5),
    mark=st.sampled_from("\u0301\u093f\u0651\u0e34\u200d"),
)
def test_a_word_is_not_broken_at_a_mark(letters, mark):
    word = mark.join(letters) + mark
    assert split_tokens(f"({word}) {word}, {word}-{word}") == [
        *("(", word, ")", word, ","),
        f"{word}-{word}",
    ]


UNITS = [
    "a",
    ".",
    "?",
    "a.",
    "a-",
    "a'",
    "'s",
    "a+",
    "a@",
    "+.",
    "1,",
    "-",
    "- ",
    "http://",
    "http://)",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", [*UNITS, ".)", ")", "'", "_a", "\u0301", "\u200d", "👩\u200d", "🇩", " "]
)
def test_garbage_takes_linear_time(unit):
    started = time.process_time()
    split_tokens("a" + unit * (300_000 // len(unit)) + " .")
    assert time.process_time() - started < 3


def test_chinese_words_are_found_and_no_token_is_whitespace():
    tokens = split_tokens("我来到 北京\u3000清华大学。", language=Language.ZH)
    assert tokens == ["我", "来到", "北京", "清华大学", "。"]


def test_chinese_characters_are_tokens_without_whitespace():
    tokens = split_tokens("我来到 北京\u3000A1。", language=Language.ZH_CHARS)
    assert tokens == ["我", "来", "到", "北", "京", "A", "1", "。"]
    assert split_tokens("中国___的", language=Language.ZH_CHARS) == ["中", "国", "___", "的"]


def test_chinese_without_its_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(MissingExtraError, match=r"elmore\[chinese\]"):
        split_tokens("你好", language=Language.ZH)


def test_half_a_surrogate_pair_in_chinese_is_a_sentence_not_a_traceback():
    with pytest.raises(DataError, match=r"character 1 .*\(U\+D800\)"):
        split_tokens("好\ud800", language=Language.ZH)


def test_a_given_string_is_one_sentence():
    assert parse_sentence("Go. Stop.") == ["Go", ".", "Stop", "."]
    assert parse_sentence("北京。", language=Language.ZH) == ["北京", "。"]


def test_given_tokens_are_taken_as_they_are():
    assert parse_sentence(["don't", "New York", " "]) == ["don't", "New York", " "]
    assert parse_sentence(("a", "b")) == ["a", "b"]
    assert parse_sentence([]) == []


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (["a", 5], "token 1 .* got int \\(5\\)"),
        ([b"a"], "token 0 .* got bytes"),
        ([["a", "b"]], "token 0 .* got list"),
        (b"a b", "got bytes"),
        (None, "got NoneType"),
    ],
)
def test_what_is_not_a_sentence_is_named_by_position_and_type(sentence, message):
    with pytest.raises(DataError, match=message):
        parse_sentence(sentence)


def test_no_pattern_repeats_a_group_possessively():
    """Python 3.11.0 to 3.11.4 match such groups wrongly; the tokens of some texts would differ."""
    folder = Path(__file__).parents[2] / "src" / "elmore" / "text"
    for path in folder.glob("*.py"):
        patterns = re.findall(r"[^\\]\)[*+?]\+", path.read_text())
        assert patterns == [], path.name

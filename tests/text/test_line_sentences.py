import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmore.errors import DataError
from elmore.text import files, line_sentences
from elmore.text.files import FASTA_FORMS, TextForm, read_numbered_sentences, read_sentences
from elmore.text.language import Language


def number(text, form, **options):
    """Return pairs of line number and joined tokens."""
    found = read_numbered_sentences(io.BytesIO(text.encode()), form=form, **options)
    return [(sentence.line, " ".join(sentence.tokens)) for sentence in found]


def test_each_line_is_one_sentence_and_blank_lines_are_kept():
    text = "\nIt rains. It pours.\n \n\nDon't go\n"
    assert number(text, TextForm.LINES) == [
        (1, ""),
        (2, "It rains . It pours ."),
        (3, ""),
        (4, ""),
        (5, "Do n't go"),
    ]


@given(st.lists(st.text(alphabet="ab .\t\r'\u2028", max_size=8), max_size=6))
def test_sentence_i_of_lines_is_line_i(lines):
    text = "".join(f"{line}\n" for line in lines)
    found = list(read_numbered_sentences(io.BytesIO(text.encode()), form=TextForm.LINES))
    assert [sentence.line for sentence in found] == list(range(1, len(lines) + 1))
    joined = ["".join(sentence.tokens) for sentence in found]
    assert joined == ["".join(line.split()) for line in lines]


def test_lines_of_chinese_are_segmented_but_not_split():
    [first, _] = number("你好。再见。\n\n", TextForm.LINES, language=Language.ZH)
    assert first[0] == 1
    assert first[1].replace(" ", "") == "你好。再见。"


def test_a_line_too_long_to_read_whole_is_an_error(monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 10)
    with pytest.raises(DataError, match="line 2: the line is over the limit"):
        number("short\nthis is too long\n", TextForm.LINES)


def test_sentences_of_one_raw_line_have_its_number():
    text = "It rained. We left.\n\nE f.\n\n\nG.\n"
    assert number(text, TextForm.RAW) == [
        (1, "It rained ."),
        (1, "We left ."),
        (2, ""),
        (3, "E f ."),
        (5, ""),
        (6, "G ."),
    ]


WRAPPED = "He came. He\nsaw. He went\naway. Then\n  it rained.\n\nThe end.\n"
WRAPPED_LINES = [
    (1, "He came ."),
    (1, "He saw ."),
    (2, "He went away ."),
    (3, "Then it rained ."),
    (5, ""),
    (6, "The end ."),
]


def test_a_wrapped_sentence_has_the_line_of_its_first_word():
    assert number(WRAPPED, TextForm.WRAPPED) == WRAPPED_LINES


@pytest.mark.parametrize("num_chars", [12, 20, 30])
def test_lines_stay_right_when_a_long_paragraph_is_read_in_pieces(num_chars, monkeypatch):
    monkeypatch.setattr(line_sentences, "MAX_PENDING_CHARS", num_chars)
    words = {}
    for line, text in enumerate(WRAPPED.splitlines(), start=1):
        words.update(dict.fromkeys(text.replace(".", " .").split(), line))
    for line, sentence in number(WRAPPED, TextForm.WRAPPED):
        first = sentence.partition(" ")[0]
        # "He" is on several lines, so only unique words are checked.
        if first not in ("", "He", "."):
            assert line == words[first]


def test_a_wrapped_sentence_of_words_that_repeat_has_its_own_line(monkeypatch):
    monkeypatch.setattr(line_sentences, "MAX_PENDING_CHARS", 7)
    text = "".join(f"No {number}.\n" for number in range(1, 8))
    found = number(text, TextForm.WRAPPED)
    assert [(line, sentence) for line, sentence in found if sentence] == [
        (line, f"No {line} .") for line in range(1, 8)
    ]


def test_a_conllu_sentence_has_its_parts_of_speech():
    text = "1\tA\ta\tDET\tDT\n2-3\tcannot\t_\t_\n2\tcan\t_\tAUX\n3\tnot\t_\t_\n4\t!\n\n"
    (found,) = read_numbered_sentences(io.BytesIO(text.encode()), form=TextForm.CONLLU)
    assert found.tokens == ["A", "can", "not", "!"]
    assert found.tags == ["DET", "AUX", "", ""]
    (plain,) = read_numbered_sentences(io.BytesIO(b"A b"), form=TextForm.TOKENIZED)
    assert plain.tags is None


def test_a_conllu_sentence_has_the_line_of_its_first_word():
    text = "# newdoc\n# text = A b\n1\tA\n2\tb\n\n\n1-2\tcd\n1\tc\n2\td\n\n# newdoc\n1\te\n"
    assert number(text, TextForm.CONLLU) == [(3, "A b"), (8, "c d"), (11, ""), (12, "e")]


@pytest.mark.parametrize("form", [form for form in TextForm if form not in FASTA_FORMS])
def test_numbered_sentences_have_the_same_tokens(form):
    text = "1\ta\n2\tb\n\n1\tc\n"
    plain = list(read_sentences(io.BytesIO(text.encode()), form=form))
    found = read_numbered_sentences(io.BytesIO(text.encode()), form=form)
    assert [sentence.tokens for sentence in found] == plain

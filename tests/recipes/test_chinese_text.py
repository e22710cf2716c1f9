"""The words of a tagged corpus are all kept, sentence by sentence, and articles stay whole."""

import subprocess
import sys
from pathlib import Path

import pytest

from elmore.errors import DataError
from recipes.chinese import cut_text
from recipes.chinese.cut_text import read_articles, split_paragraph, write_parts

TWO_ARTICLES = """\
新年/t  讲话/n\r
[中国/ns  政府/n]nt  说/v  ：/w  “/w  好/a  ！/w  ”/w  谢谢/v  。/w\r
\r
\r
［/w  ３．５％/m  ］/w  ，/w  [[甲/n  乙/n]nt  丙/n]nt  １／２/m\r
"""


@pytest.fixture
def write(tmp_path):
    def write_corpus(text, encoding="utf-8"):
        path = tmp_path / "corpus.txt"
        path.write_bytes(text.encode(encoding))
        return path

    return write_corpus


def test_blank_lines_end_articles_and_line_ends_sentences(write):
    assert list(read_articles(write(TWO_ARTICLES))) == [
        [
            ["新年", "讲话"],
            ["中国", "政府", "说", "：", "“", "好", "！", "”"],
            ["谢谢", "。"],
        ],
        [["［", "3.5%", "］", "，", "甲", "乙", "丙", "1/2"]],
    ]


def test_numbered_paragraphs_are_grouped_into_articles_by_number(write):
    numbered = """\
19980101-01-001-001/m  一/m
19980101-01-001-002/m  二/m
19980101-01-002-001/m  三/m
19980102-01-002-001/m  四/m
"""
    assert list(read_articles(write("\ufeff" + numbered))) == [
        [["一"], ["二"]],
        [["三"]],
        [["四"]],
    ]


@pytest.mark.parametrize(
    ("paragraph", "wanted"),
    [
        ("一 。 二", ["一 。", "二"]),
        ("“ 一 ？ ！ ” 二 。 ）", ["“ 一 ？ ！ ”", "二 。 ）"]),
        ("一 。 “ 二 。 ”", ["一 。", "“ 二 。 ”"]),
        ("） 一 ， 二 ； 三", ["） 一 ， 二 ； 三"]),
        ("！ 一", ["！", "一"]),
        ("", []),
    ],
)
def test_a_sentence_keeps_the_marks_that_close_it(paragraph, wanted):
    assert list(map(" ".join, split_paragraph(paragraph.split()))) == wanted


def test_every_article_is_in_one_part_and_every_fiftieth_held_out(tmp_path):
    articles = [[[str(number), "甲"], [str(number), "乙"]] for number in range(149)]
    assert write_parts(articles, tmp_path) == (147, 2)
    train, heldout = (
        (tmp_path / name).read_text(encoding="utf-8") for name in ("train.txt", "heldout.txt")
    )
    assert heldout == "49 甲\n49 乙\n\n99 甲\n99 乙\n\n"
    assert train.split("\n\n")[:-1] == [
        f"{number} 甲\n{number} 乙" for number in range(149) if number not in (49, 99)
    ]


def test_a_line_without_tags_is_named(write):
    with pytest.raises(DataError, match=r"corpus\.txt, line 2: .* got '讲话'; fix the line"):
        list(read_articles(write("新年/t\n新年/t 讲话\n")))


def test_another_encoding_is_named(write):
    with pytest.raises(DataError, match=r"line 1: byte .* is not UTF-8; .* iconv -f GB18030"):
        list(read_articles(write("新年/t\n", encoding="gb18030")))


@pytest.mark.slow
def test_mistakes_end_the_script_with_a_sentence_and_leave_nothing(write, tmp_path):
    def run(*arguments):
        script = [sys.executable, cut_text.__file__, *map(str, arguments)]
        return subprocess.run(script, capture_output=True, encoding="utf-8", check=False)

    out = tmp_path / "out"
    for corpus, message in (
        (write("新年\n"), "expected words with tags"),
        (tmp_path / "none.txt", "there is no file"),
        (Path("/dev/null"), "no words in"),
    ):
        result = run(corpus, out)
        assert result.returncode == 2
        assert message in result.stderr
        assert "Traceback" not in result.stderr
        assert not out.exists()
    result = run(write("新年/t\n"), write("新年/t\n"))
    assert (result.returncode, "name the folder" in result.stderr) == (2, True)
    assert run(write("新年/t\n"), out).stdout == "1 articles to train on, 0 held out\n"

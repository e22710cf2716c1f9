import gzip

import pytest

from elmore.errors import DataError
from elmore.tasks.data.columns import TaggedSentence, looks_numbered, read_columns
from tests.tasks.data.places import find_data

# Characters with their places in their words; in the third line a 0, twelfth of its word.
NUMBERED = "科0\tO\n技1\tB-ORG.NAM\n011\tI-ORG.NAM\n\n\ufffd\ufffd0\tO\n"


def write(folder, text, name="text"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def count_entities(tags):
    """Count as IOB1 says: B- is used only where I- would continue the span before."""
    previous = ["O", *tags[:-1]]
    return sum(
        tag != "O" and (tag[0] == "B" or before[1:] != tag[1:])
        for before, tag in zip(previous, tags, strict=True)
    )


def test_sentences_come_before_the_file_has_been_read(tmp_path):
    sentences = read_columns(write(tmp_path, "EU I-ORG\n\nsaid\n"), column=2)
    assert next(sentences) == TaggedSentence(tokens=["EU"], tags=["I-ORG"])
    with pytest.raises(DataError, match="text, line 3"):
        next(sentences)


def test_positions_of_characters_in_their_words_are_dropped(tmp_path):
    path = write(tmp_path, NUMBERED)
    first, second = read_columns(path, column=2, has_spans=True, is_numbered=True)
    assert first == TaggedSentence(tokens=["科", "技", "0"], tags=["O", "B-ORG.NAM", "I-ORG.NAM"])
    assert second.tokens == ["\ufffd\ufffd"]
    assert next(read_columns(path, column=2)).tokens == ["科0", "技1", "011"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "科0\tO\n技\tO\n",
            "line 2: expected a token and its position in its word, such as 科0, got '技'",
        ),
        ("科0\tO\n1\tO\n", "line 2: expected a token and its position"),
        ("科0\tO\n技1\tORG\n", "line 2: expected a span tag .* got 'ORG'"),
        ("科0\tO\n技1\tX-ORG\n", "line 2: expected a span tag .* got 'X-ORG'"),
        ("科0\tO\n技1\tO-ORG\n", "line 2: expected a span tag .* got 'O-ORG'"),
        ("科0\tO\n技1\tB-\n", "line 2: expected a span tag .* got 'B-'"),
        ("科0\tO\n技1\t\n", "line 2: .* got '技1' and ''"),
        ("科0\tO\n\tO\n", "line 2: .* got '' and 'O'"),
    ],
)
def test_tokens_and_tags_that_are_invalid_are_named(tmp_path, text, complaint):
    with pytest.raises(DataError, match=complaint):
        list(read_columns(write(tmp_path, text), column=2, has_spans=True, is_numbered=True))


def test_an_empty_column_is_a_column(tmp_path):
    path = write(tmp_path, "EU\t\tI-ORG\n")
    assert [each.tags for each in read_columns(path, column=3)] == [["I-ORG"]]
    with pytest.raises(DataError, match="tag in column 2, got 'EU' and ''"):
        list(read_columns(path, column=2))


def test_not_utf8_and_empty_files(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress("EU O\ncafé O\n".encode("latin-1")))
    with pytest.raises(DataError, match="line 2: byte 0xe9 is not UTF-8"):
        list(read_columns(path, column=2))
    with pytest.raises(DataError, match="has no tagged sentence"):
        list(read_columns(write(tmp_path, "\n"), column=2))


@pytest.mark.parametrize(
    ("part", "num_sentences", "num_entities"),
    [("train", 14_041, 23_499), ("testa", 3_250, 5_942), ("testb", 3_453, 5_648)],
)
def test_conll_2003_has_its_entities(part, num_sentences, num_entities):
    sentences = list(read_columns(find_data(f"conll2003/eng.{part}"), column=4, has_spans=True))
    assert len(sentences) == num_sentences
    assert sum(count_entities(sentence.tags) for sentence in sentences) == num_entities


@pytest.mark.parametrize(
    ("name", "num_sentences"),
    [
        ("ud_ewt/en_ewt-ud-train.conllu", 12_544),
        ("ud_ewt/en_ewt-ud-dev.conllu", 2_001),
        ("ud_ewt/en_ewt-ud-test.conllu", 2_077),
        ("chinese/ud_gsd/zh-ud-train-v1.conllu", 3_997),
        ("chinese/ud_gsd/zh_gsd-ud-dev.conllu", 500),
        ("chinese/ud_gsd/zh_gsd-ud-test.conllu", 500),
    ],
)
def test_universal_dependencies_have_their_sentences(name, num_sentences):
    assert sum(1 for _ in read_columns(find_data(name))) == num_sentences


@pytest.mark.parametrize(
    ("name", "num_sentences"),
    [
        ("weibo_ner/train.conll", 1_350),
        ("weibo_ner/dev.conll", 270),
        ("weibo_ner/test.conll", 270),
        ("peoples_daily_ner_devtest/example.dev", 2_318),
        ("peoples_daily_ner_devtest/example.test", 4_636),
    ],
)
def test_chinese_names_are_read_a_character_a_token(name, num_sentences):
    path = find_data(f"chinese/{name}")
    is_numbered = "weibo" in name
    sentences = list(read_columns(path, column=2, has_spans=True, is_numbered=is_numbered))
    assert len(sentences) == num_sentences
    characters = [token for sentence in sentences for token in sentence.tokens]
    # Weibo's emoji, once two surrogates, are two U+FFFD.
    assert {len(token) for token in characters} - {1} <= {2}
    assert {token for token in characters if len(token) == 2} <= {"\ufffd\ufffd"}


def test_characters_with_their_positions_are_recognized(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("科0 O\n技1 O\n\n20 O\n" * 5)
    assert looks_numbered(path)
    path.write_text("科0 O\n技1 O\n" * 6 + "部 O\n")
    assert not looks_numbered(path)
    path.write_text("A1 O\n")
    assert not looks_numbered(path), "one line is not enough"


def test_sentences_know_their_lines(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("EU x\n\nno y\nnot z\n")
    first, second = read_columns(path, column=2)
    assert (first.lines, second.lines) == ((1,), (3, 4))
    assert second.name_position(1) == f"{path}, line 4"


def test_a_blank_line_that_conllu_lost_is_named(tmp_path):
    lines = [f"{number}\tword\t_\tNOUN\t_\t_\t0\troot\t_\t_\n" for number in (1, 2)]
    whole = write(tmp_path, "".join([*lines, "\n", *lines]))
    assert [sentence.tokens for sentence in read_columns(whole)] == [["word"] * 2] * 2
    joined = write(tmp_path, "".join([*lines, "# text\n", *lines]))
    with pytest.raises(DataError, match="text, line 4: a word has the number 1 but is not the f"):
        list(read_columns(joined))

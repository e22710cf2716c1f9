import gzip
import lzma

import pytest

from elmore.errors import ConfigError, DataError
from elmore.probes.tagged_data import TaggedSentence, guess_by_frequency, read_tagged

CONLLU = """\
# newdoc id = a
# text = Don't\tgo, 3 times
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
3.1\tgone\tgo\tVERB\tVBN\t_\t_\t_\t_\t_

# sent_id = 2
1\t10 000\t10000\tNUM\tCD\t_\t2\tnummod\t_\t_
2\t#\t#\tSYM\tNN\t_\t0\troot\t_\t_
"""
COLUMNS = """\
-DOCSTART- -X- O O

EU NNP I-NP I-ORG
#  #  O  O

-DOCSTART- -X- O O
Peter NNP I-NP I-PER
"""


def write(folder, text, name="text.conllu"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def sentence(text):
    """Make a sentence of `token/tag` pairs."""
    pairs = [entry.rsplit("/", 1) for entry in text.split()]
    return TaggedSentence(tokens=[token for token, _ in pairs], tags=[tag for _, tag in pairs])


@pytest.mark.parametrize(
    ("column", "tags"),
    [
        ("upos", [["AUX", "PART", "VERB"], ["NUM", "SYM"]]),
        ("xpos", [["VB", "RB", "VB"], ["CD", "NN"]]),
        ("deprel", [["aux", "advmod", "root"], ["nummod", "root"]]),
    ],
)
def test_words_of_conllu_have_the_tags_of_a_column(column, tags, tmp_path):
    sentences = read_tagged(write(tmp_path, CONLLU), column=column)
    # Neither the range 1-2 nor the empty node 3.1 is a word.
    assert [each.tokens for each in sentences] == [["Do", "n't", "go"], ["10 000", "#"]]
    assert [each.tags for each in sentences] == tags


def test_lines_may_end_as_on_windows_and_the_last_not_at_all(tmp_path):
    path = tmp_path / "text.conllu"
    path.write_bytes(CONLLU.rstrip("\n").replace("\n", "\r\n").encode())
    assert read_tagged(path) == read_tagged(write(tmp_path, CONLLU, "other.conllu"))
    path.write_bytes(b"EU\tORG\r\n \t \r\nsaid\tO")
    assert [each.tags for each in read_tagged(path.rename(tmp_path / "text"), column=2)] == [
        ["ORG"],
        ["O"],
    ]


@pytest.mark.parametrize("column", [4, "4"])
def test_columns_are_counted_from_the_token_on_and_documents_are_not_sentences(column, tmp_path):
    sentences = read_tagged(write(tmp_path, COLUMNS, "eng.train"), column=column)
    assert sentences == [sentence("EU/I-ORG #/O"), sentence("Peter/I-PER")]
    tabs = write(tmp_path, COLUMNS.replace("  ", " ").replace(" ", "\t"), "tabs.txt")
    assert read_tagged(tabs, column=column) == sentences


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_files_are_read_alike(suffix, compress, tmp_path):
    path = tmp_path / f"text.conllu{suffix}"
    path.write_bytes(compress(CONLLU.encode()))
    assert read_tagged(path) == read_tagged(write(tmp_path, CONLLU))


@pytest.mark.parametrize(
    ("name", "text", "column", "messages"),
    [
        ("a.conllu", CONLLU + "3\tso\t_\tADV\n", "upos", ["a.conllu, line 12", "10", "got 4"]),
        # A lost column would shift the others.
        (
            "a.conllu",
            CONLLU.replace("\tdo\tAUX", "\t\tAUX"),
            "upos",
            ["a.conllu, line 4", "got 9"],
        ),
        (
            "a.conllu",
            CONLLU.replace("\tRB\t", "\t_\t"),
            "xpos",
            ["a.conllu, line 5", '"n\'t" has no xpos'],
        ),
        (
            "eng",
            COLUMNS,
            "upos",
            ["eng, line 3", "'EU NNP I-NP I-ORG'", "give the number of the tag's column"],
        ),
        ("eng", COLUMNS + "left\n", "4", ["eng, line 8", "column 4", "got 1 column ('left')"]),
        ("eng", COLUMNS, "5", ["eng, line 3", "column 5", "got 4 columns"]),
        ("a.conllu", "", "upos", ["a.conllu has no tagged sentence"]),
        ("a.conllu", "# text = nothing\n\n", "upos", ["a.conllu has no tagged sentence"]),
        ("eng", "-DOCSTART- O\n\n", "2", ["eng has no tagged sentence"]),
    ],
)
def test_errors_name_file_and_line(name, text, column, messages, tmp_path):
    with pytest.raises(DataError) as caught:
        read_tagged(write(tmp_path, text, name), column=column)
    for message in messages:
        assert message in str(caught.value)


@pytest.mark.parametrize("column", ["pos", "1", "0", "-1", "2.0", "²", ""])
def test_an_impossible_column_is_refused_before_reading(column, tmp_path):
    with pytest.raises(ConfigError, match="upos, xpos, deprel"):
        read_tagged(tmp_path / "none", column=column)


def test_numbered_columns_of_conllu_are_refused_since_its_first_is_not_a_token(tmp_path):
    with pytest.raises(ConfigError, match="is CoNLL-U"):
        read_tagged(tmp_path / "text.CONLLU.gz", column=4)


def test_guesses_are_the_most_frequent_tags_counted_by_hand():
    train = [
        sentence("play/V a/D play/N"),
        sentence("the/D play/N The/X set/N set/V"),
    ]
    # play: N twice, V once. set: N and V once each, N first. Of all: N 3 times, V 2, D 2, X 1.
    test = [sentence("a/? play/?"), sentence("set/? The/? the/? Play/? unknown/?")]
    assert guess_by_frequency(train, test) == ["D", "N", "N", "X", "D", "N", "N"]
    assert guess_by_frequency(train, []) == []


def test_an_empty_column_is_noticed(tmp_path):
    (tmp_path / "tabs.txt").write_text("a\tA\tO\nb\t\tO\n")
    with pytest.raises(DataError, match=r"line 2: expected a token in column 1 and its tag"):
        read_tagged(tmp_path / "tabs.txt", column=2)
    (tmp_path / "spaces.txt").write_text("a A O\nb  O\n")
    with pytest.raises(
        DataError, match=r"line 2: expected 3 columns as in the lines before, got 2"
    ):
        read_tagged(tmp_path / "spaces.txt", column=2)

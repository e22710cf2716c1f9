"""FASTA records are sentences of residues under their ids."""

import gzip

import pytest

from elmore.corpus.prepare import prepare_corpus
from elmore.corpus.settings import PrepareSettings
from elmore.errors import DataError
from elmore.text.excerpts import find_cut
from elmore.text.files import TextForm, guess_form, read_sentences, read_text
from elmore.text.language import Language

TWO = b""">sp|P1|A_HUMAN Some protein
MKT AYIAK
uzob*

; a comment
>2
ACD-EF.G
"""


def read(path, data, **settings):
    path.write_bytes(data)
    return list(read_text(path, **settings))


def test_a_record_is_a_sentence_under_its_id(tmp_path):
    first, second = read(tmp_path / "a.fasta", TWO)
    assert (first.key, first.line, "".join(first.tokens)) == ("sp|P1|A_HUMAN", 1, "MKTAYIAKXXXX")
    assert (second.key, second.line, second.tokens) == ("2", 6, list("ACDEFG"))


def test_rare_residues_can_be_kept(tmp_path):
    first, _ = read(tmp_path / "a.fasta", TWO, form=TextForm.FASTA_EXACT)
    assert "".join(first.tokens) == "MKTAYIAKUZOB"


@pytest.mark.parametrize("name", ["a.fasta", "a.fa", "a.FAA", "a.fasta.gz"])
def test_the_form_is_known_by_the_name(name, tmp_path):
    path = tmp_path / name
    assert guess_form(path) is TextForm.FASTA
    data = gzip.compress(TWO) if name.endswith(".gz") else TWO
    assert len(read(path, data)) == 2


def test_line_ends_of_windows_and_no_line_end_at_all(tmp_path):
    (record,) = read(tmp_path / "a.fa", b">a\r\nMK\r\nT")
    assert (record.key, record.tokens) == ("a", ["M", "K", "T"])


def test_every_record_is_a_document(tmp_path):
    (tmp_path / "a.fa").write_bytes(TWO)
    sentences = list(read_sentences(tmp_path / "a.fa", form=TextForm.FASTA))
    assert [bool(tokens) for tokens in sentences] == [True, False, True]


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"MKT\n", "line 1: expected a record that starts with >"),
        (b">\nMKT\n", "line 1: the record has no id"),
        (b">a\n>b\nM\n", "line 1: record 'a' has no residues"),
        (b">a\nMK\nM1T\n", "line 3: '1' in record 'a'"),
        (">a\nMé\n".encode(), "line 2: 'É' in record 'a'"),
    ],
)
def test_mistakes_name_their_line(data, match, tmp_path):
    with pytest.raises(DataError, match=match):
        read(tmp_path / "a.fa", data)


def test_an_empty_file_has_no_records(tmp_path):
    assert read(tmp_path / "a.fa", b"") == []


def test_chunks_of_a_corpus_end_between_records():
    data = b">a\nMKT\n>b\nAC"
    assert find_cut(data, form=TextForm.FASTA, language=Language.EN) == 7


def test_a_corpus_has_a_document_per_record(tmp_path):
    path = tmp_path / "a.fasta"
    path.write_bytes(b"".join(b">%d\nMKTAYIAKQR\n" % number for number in range(40)))
    settings = PrepareSettings(min_count=1, heldout=0.1)
    corpus = prepare_corpus([path], tmp_path / "corpus", settings=settings, num_processes=1)
    assert corpus.train.num_documents + corpus.heldout.num_documents == 40
    assert set("MKTAYIQR") <= set(corpus.vocabulary)

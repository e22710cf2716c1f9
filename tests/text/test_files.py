import bz2
import gzip
import io
import lzma
import os
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.errors import DataError, MissingExtraError
from elmore.text import files, line_sentences
from elmore.text.files import (
    BadBytes,
    Excerpt,
    TextForm,
    find_files,
    guess_form,
    open_text,
    read_excerpt,
    read_sentences,
)
from elmore.text.language import Language


def read(text, form, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return list(read_sentences(io.BytesIO(data), form=form, **options))


def _limit_pending(monkeypatch, num_chars):
    monkeypatch.setattr(files, "MAX_PENDING_CHARS", num_chars)
    monkeypatch.setattr(line_sentences, "MAX_PENDING_CHARS", num_chars)


RAW = [
    ("Go. Stop.\nWait\n", [["Go", "."], ["Stop", "."], ["Wait"]]),
    ("\n \nA\n\n\r\n\t\nB\n\n", [["A"], [], ["B"]]),
    ("no line break at the end", [["no", "line", "break", "at", "the", "end"]]),
    ("one\r\ntwo", [["one"], ["two"]]),
    ("\n\n", []),
    ("", []),
]
WRAPPED = [
    ("It was\nlate. He\r\nleft.\n", [["It", "was", "late", "."], ["He", "left", "."]]),
    ("\nA b\n\n\n  \nc\nd\n\n", [["A", "b"], [], ["c", "d"]]),
    ("a\nb", [["a", "b"]]),
    ("", []),
]
TOKENIZED = [
    ("do n't  U.S.\n\n \nb\n", [["do", "n't", "U.S."], [], [], ["b"]]),
    ("New York\t\tis big\t\n", [["New York", "is big"]]),
    ("a\t \t\u3000\r\n\t\n", [["a", " ", "\u3000"], []]),
    (
        "a\u2028b\x85c\x0cd\u00a0e\x00 f\rg\u3000h\n",
        [["a\u2028b\x85c\x0cd\u00a0e\x00", "f\rg\u3000h"]],
    ),
    ("last", [["last"]]),
    ("", []),
]
LINES = [
    ("Go. Stop.\n\n \nDon't\r\n", [["Go", ".", "Stop", "."], [], [], ["Do", "n't"]]),
    ("last", [["last"]]),
    ("", []),
]
# tests/text/test_fasta.py reads the others.
WORD_FORMS = [form for form in TextForm if form not in files.FASTA_FORMS]
CONLLU = [
    ("1\tA\t_\n2\tb\n\n1\tC\r\n\r\n", [["A", "b"], ["C"]]),
    ("1-2\tdu\t_\n1\tde\t_\n2\tle\t_\n2.1\tx\t_\n", [["de", "le"]]),
    ("# newdoc id = 1\n# text = A\n1\tA\n\n#newdoc\n1\tB\n", [["A"], [], ["B"]]),
    ("1\tA\n\n# newdoc\n\n# newdoc\n# newdocument\n", [["A"]]),
    ("1\tNew York\t_\n\n\n", [["New York"]]),
    ("", []),
]


@pytest.mark.parametrize(
    ("form", "text", "sentences"),
    [
        (form, *case)
        for form, cases in zip(WORD_FORMS, (RAW, WRAPPED, TOKENIZED, LINES, CONLLU), strict=True)
        for case in cases
    ],
)
def test_each_form_is_read_by_its_rules(form, text, sentences):
    assert read(text, form) == sentences


def test_a_language_reaches_sentences_and_tokens():
    expected = [["北京", "很大", "。"], ["好", "！"]]
    assert read("北京很大。好！\n", TextForm.RAW, language=Language.ZH) == expected
    assert read("北\n京很大。\n好！\n", TextForm.WRAPPED, language=Language.ZH) == expected


TOKENS = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(sentences=st.lists(st.lists(TOKENS, min_size=2, max_size=5), max_size=5))
def test_tokens_between_tabs_come_back_as_written(sentences):
    text = "".join("\t".join(sentence) + "\n" for sentence in sentences)
    assert read("\ufeff" + text, TextForm.TOKENIZED) == sentences


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(
        st.one_of(st.sampled_from("ab. \n\ré\u2028"), st.characters(exclude_categories=["Cs"]))
    )
)
@pytest.mark.parametrize("form", [TextForm.RAW, TextForm.WRAPPED])
def test_plain_text_loses_only_whitespace(form, text):
    tokens = [token for sentence in read("\ufeff" + text, form) for token in sentence]
    assert "".join(tokens) == "".join(text.split())


@pytest.mark.parametrize("form", WORD_FORMS)
def test_a_byte_order_mark_at_the_start_is_dropped(form):
    assert read("\ufeff1\ta", form)[0][0] == ("a" if form == TextForm.CONLLU else "1")


@pytest.mark.parametrize("form", [TextForm.RAW, TextForm.WRAPPED])
def test_a_long_line_is_split_as_if_read_whole(form, monkeypatch):
    text = "Mr. Fox left at 5 p.m. on Monday. Was it café? Yes! " * 200
    whole = read(text, form)
    _limit_pending(monkeypatch, 211)
    assert read(text, form) == whole
    assert len(whole) == 600


def test_an_endless_sentence_is_cut_at_whitespace(monkeypatch):
    _limit_pending(monkeypatch, 100)
    *cut, end = read("ab cd " * 500 + "\nEnd\n", TextForm.RAW)
    assert [token for sentence in cut for token in sentence] == ["ab", "cd"] * 500
    assert all(0 < len(sentence) < 200 // 3 + 1 for sentence in cut)
    assert end == ["End"]


def test_an_endless_token_is_cut_anywhere(monkeypatch):
    _limit_pending(monkeypatch, 100)
    *cut, end = read("é" * 1000 + "\nEnd\n", TextForm.RAW)
    assert all(len(sentence) == 1 and len(sentence[0]) <= 200 for sentence in cut)
    assert "".join(sentence[0] for sentence in cut) == "é" * 1000
    assert end == ["End"]


def test_a_long_blank_line_is_one_break(monkeypatch):
    _limit_pending(monkeypatch, 10)
    assert read("A\n" + " " * 100 + "\nB", TextForm.RAW) == [["A"], [], ["B"]]
    assert read("A\n" + " " * 100 + "\nB", TextForm.WRAPPED) == [["A"], [], ["B"]]


def test_spaces_after_a_long_line_are_not_a_blank_line(monkeypatch):
    _limit_pending(monkeypatch, 10)
    assert [] not in read("A b c d. E f g h. I j k l." + " " * 50 + "\nB", TextForm.RAW)


@pytest.mark.slow
@pytest.mark.parametrize("line_end", ["", "\n"])
def test_memory_does_not_grow_with_the_file(line_end, tmp_path, monkeypatch):
    _limit_pending(monkeypatch, 2**12)
    path = tmp_path / "a.txt"
    peaks = []
    for num_sentences in (500, 500, 5_000):  # once to load what loads once
        path.write_text(f"Rain fell all day. {line_end}" * num_sentences)
        tracemalloc.start()
        assert sum(1 for _ in read_sentences(path, form=TextForm.WRAPPED)) == num_sentences
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("a.txt", bytes),
        ("a.gz", gzip.compress),
        ("a.XZ", lzma.compress),
        ("a.bz2", bz2.compress),
        ("a.zst", zstandard.compress),
    ],
)
def test_a_file_is_opened_by_its_suffix(name, compress, tmp_path):
    path = tmp_path / name
    path.write_bytes(compress("één.\n".encode()))
    assert list(read_sentences(path, form=TextForm.RAW)) == [["één", "."]]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.conllu", TextForm.CONLLU),
        ("a.CONLL.gz", TextForm.CONLLU),
        ("a.conllu.txt", TextForm.RAW),
        ("a.txt.xz", TextForm.RAW),
        ("a.conllu.zst", TextForm.CONLLU),
        ("a", TextForm.RAW),
        (".gz", TextForm.RAW),
    ],
)
def test_the_name_determines_the_form(name, form):
    assert guess_form(Path(name)) == form


@pytest.mark.parametrize(
    ("form", "data", "line", "byte"),
    [
        (TextForm.RAW, b"a\nb\ncaf\xe9 x\n", 3, "0xe9"),
        (TextForm.WRAPPED, b"a\n\xff\xfea\n", 2, "0xff"),
        (TextForm.TOKENIZED, b"caf\xc3\n\xa9", 1, "0xc3"),
        (TextForm.TOKENIZED, b"a\ncaf\xc3", 2, "0xc3"),
        (TextForm.CONLLU, b"1\ta\n2\t\x80\n", 2, "0x80"),
    ],
)
def test_a_byte_that_is_not_utf8_is_named_with_its_position(form, data, line, byte, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"a.txt, line {line}: byte {byte} .*iconv"):
        list(read_sentences(path, form=form))


def test_a_character_cut_by_a_piece_is_read_whole(monkeypatch):
    _limit_pending(monkeypatch, 5)
    assert read("é" * 4, TextForm.RAW) == [["éééé"]]


@pytest.mark.parametrize("line", ["A", "A NN", "x\tA", "1", "1\t\t_", "1.\tA", "٣\tA"])
def test_a_malformed_conllu_line_is_named_with_its_position(line):
    with pytest.raises(DataError, match=r"standard input, line 3: expected CoNLL-U"):
        read(f"# text\n1\tOk\n{line}\n", TextForm.CONLLU)


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("a.gz", gzip.compress),
        ("a.xz", lzma.compress),
        ("a.bz2", bz2.compress),
        ("a.zst", zstandard.ZstdCompressor(write_checksum=True).compress),
    ],
)
def test_a_damaged_archive_is_a_sentence_not_a_traceback(name, compress, tmp_path):
    packed = compress(os.urandom(3000).hex().encode())
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0xFF
    cut = [packed[: len(packed) // 2], packed[:-3], packed[:10] + b"\xff" * 100]
    for data in (*cut, bytes(flipped), b"plain text\n"):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(DataError, match=f"cannot read .*{name} "):
            list(read_sentences(path, form=TextForm.RAW))


COMPRESS = {
    "a.gz": gzip.compress,
    "a.xz": lzma.compress,
    "a.bz2": bz2.compress,
    "a.zst": zstandard.compress,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("junk", [b"junk", b"x", b"\n", b"\0x", bytes(100_000) + b"x"])
def test_bytes_after_the_compressed_data_are_refused(name, junk, tmp_path):
    path = tmp_path / name
    for text in (b"A b.\n", b"A b.\n" * 10_000):
        path.write_bytes(COMPRESS[name](text) + junk)
        with pytest.raises(DataError) as caught:
            list(read_sentences(path, form=TextForm.RAW))
        assert str(caught.value) == (
            f"cannot read {path} (other bytes follow its compressed data); if it is compressed, "
            "it is damaged, truncated or has the wrong suffix: copy it again"
        )


@pytest.mark.parametrize("name", ["a.gz", "a.xz"])
def test_zeros_after_the_compressed_data_are_padding(name, tmp_path):
    path = tmp_path / name
    packed = COMPRESS[name](b"a\n")
    path.write_bytes(packed + bytes(40_000) + packed + bytes(4))
    assert list(read_sentences(path, form=TextForm.TOKENIZED)) == [["a"], ["a"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPRESS)
def test_much_text_in_few_bytes_is_unpacked_little_by_little(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(COMPRESS[name](bytes(2**25)))
    tracemalloc.start()
    with open_text(path) as (_, stream):
        num_bytes = sum(map(len, iter(lambda: stream.read(2**16), b"")))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_bytes == 2**25
    assert peak < 3 * 2**23


WHOLE_LINES = [TextForm.TOKENIZED, TextForm.CONLLU]


@pytest.mark.parametrize("form", WHOLE_LINES)
def test_a_line_that_is_too_long_is_named_and_not_read(form, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 20)
    long = "1\t" + "a" * 19
    assert read(f"1\tb\n{long[:19]}\n", form)
    for line in (long, long + "\n", long + "a" * 100 + "\n"):
        with pytest.raises(DataError, match=r"standard input, line 2: .*20 bytes"):
            read(f"1\tb\n{line}", form)


@pytest.mark.parametrize("form", WHOLE_LINES)
def test_a_token_that_is_too_long_is_named_and_not_read(form, monkeypatch):
    monkeypatch.setattr(files, "MAX_TOKEN_CHARS", 5)
    assert read("1\tb\n2\tabcde\n", form)
    with pytest.raises(DataError, match=r"standard input, line 2: .*6 characters.* 5"):
        read("1\tb\n2\tabcdef\n", form)


@pytest.mark.slow
@pytest.mark.parametrize("form", WHOLE_LINES)
def test_an_endless_line_takes_little_memory(form, tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(100_000_000), 9))
    tracemalloc.start()
    with pytest.raises(DataError, match=r"a\.gz, line 1"):
        list(read_sentences(path, form=form))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * files.MAX_LINE_BYTES


def test_a_file_that_cannot_be_opened_is_a_sentence_not_a_traceback(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError

    for path, message in [
        (tmp_path / "missing.gz", "there is no file .*missing.gz"),
        (tmp_path, "is a folder"),
        (tmp_path / "nul\0.txt", "cannot open"),
    ]:
        with pytest.raises(DataError, match=message):
            list(read_sentences(path, form=TextForm.RAW))
    monkeypatch.setattr(Path, "open", refuse)  # root may read everything
    with pytest.raises(DataError, match="no permission to read"):
        list(read_sentences(tmp_path / "a.locked", form=TextForm.RAW))


def test_messages_name_a_stream_as_well_as_they_can():
    stream = io.BytesIO(b"\xff")
    for name, shown in [
        ("a/b.txt", "a/b.txt"),
        ("<stdin>", "standard input"),
        (0, "standard input"),
    ]:
        stream.seek(0)
        stream.name = name
        with pytest.raises(DataError, match=f"^{shown}, line 1"):
            list(read_sentences(stream, form=TextForm.RAW))


def test_a_stream_is_left_open():
    stream = io.BytesIO(b"a\nb\n")
    assert next(read_sentences(stream, form=TextForm.TOKENIZED)) == ["a"]
    assert not stream.closed


def test_sentences_come_as_they_are_read():
    class Endless(io.RawIOBase):
        def readline(self, size=-1, /):
            return b"Rain.\n"

    sentences = read_sentences(Endless(), form=TextForm.RAW)
    assert [next(sentences) for _ in range(3)] == [["Rain", "."]] * 3


@pytest.mark.slow
def test_frames_one_after_another_are_one_text(tmp_path):
    text = b"".join(b"%d\n" % number for number in range(50_000))
    frames = [zstandard.compress(part) for part in (text[:7], b"", text[7:100_000], text[100_000:])]
    (tmp_path / "a.zst").write_bytes(b"".join(frames))
    sentences = list(read_sentences(tmp_path / "a.zst", form=TextForm.TOKENIZED))
    assert sentences == [[str(number)] for number in range(50_000)]


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.zst").write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"pip install 'elmore\[zstd\]'"):
        list(read_sentences(tmp_path / "a.zst", form=TextForm.RAW))


@pytest.mark.parametrize("form", WORD_FORMS)
def test_excerpts_together_have_what_the_file_has(form):
    text = "1\tA b.\n\n2\tC.\r\n\n\n# newdoc\n1\tD\n"
    lines = text.encode().splitlines(keepends=True)
    is_line_a_sentence = form in (TextForm.RAW, TextForm.TOKENIZED)
    for cut in range(len(lines) + 1) if is_line_a_sentence else (2, 4, 5):
        halves = [b"".join(lines[:cut]), b"".join(lines[cut:])]
        found = []
        for place, data in enumerate(halves):
            excerpt = Excerpt(
                data=data, name="a", first_line=1 + place * cut, starts_file=not place
            )
            found += read_excerpt(excerpt, form=form)
        assert list(filter(None, found)) == list(filter(None, read(text, form)))


def test_an_excerpt_keeps_line_numbers_and_marks_that_are_not_first():
    excerpt = Excerpt(data="\ufeffa\n".encode() + b"\xff\n", name="b.txt", first_line=7,
                      starts_file=False)  # fmt: skip
    sentences = read_excerpt(excerpt, form=TextForm.TOKENIZED)
    assert next(sentences) == ["\ufeffa"]
    with pytest.raises(DataError, match=r"b\.txt, line 8: byte 0xff"):
        next(sentences)


@pytest.mark.parametrize("form", [TextForm.RAW, TextForm.TOKENIZED])
@given(data=st.lists(st.sampled_from([b"a", b" ", b"\n", b"\xff", b"\xc3", b"\xc3\xa9"])))
@settings(max_examples=100, deadline=None)
def test_bad_bytes_are_replaced_as_python_does(form, data):
    data = b"".join(data)
    bad = []
    excerpt = Excerpt(data=data, name="a")
    sentences = list(read_excerpt(excerpt, form=form, on_bad_bytes=bad.append))
    text = data.decode("utf-8", "replace")
    assert "".join(map("".join, sentences)) == "".join(text.split())
    lines = data.split(b"\n")
    assert [(b.line_number, b.count) for b in bad] == [
        (number, line.decode("utf-8", "replace").count("\ufffd"))
        for number, line in enumerate(lines, start=1)
        if "\ufffd" in line.decode("utf-8", "replace")
    ]
    assert all(isinstance(b, BadBytes) and b.byte in (0xFF, 0xC3) for b in bad)


def test_a_character_cut_by_a_piece_with_bad_bytes_is_read_whole(monkeypatch):
    _limit_pending(monkeypatch, 2)
    bad = []
    excerpt = Excerpt(data=b"\xff" + "éé".encode() + b"\xff", name="a")
    sentences = read_excerpt(excerpt, form=TextForm.RAW, on_bad_bytes=bad.append)
    assert "".join(map("".join, sentences)) == "\ufffdéé\ufffd"
    assert [(b.line_number, b.count) for b in bad] == [(1, 1), (1, 1)]


def test_patterns_name_files_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "c.gz", "[x].txt"):
        Path(name).touch()
    Path("d.txt").mkdir()
    assert [str(path) for path in find_files(["c.gz", "*.txt", "[x].txt"])] == [
        *("c.gz", "[x].txt", "a.txt", "b.txt", "[x].txt"),
    ]
    assert find_files(["missing"]) == [Path("missing")]  # the error on opening it says more
    with pytest.raises(DataError, match=r"no file matches '\*\.xml'"):
        find_files(["*.xml"])

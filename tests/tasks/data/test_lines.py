import gzip
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.errors import DataError
from elmore.tasks.data import lines
from elmore.tasks.data.lines import read_lines, refuse_none
from elmore.text import files


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("\ufeffa\u2028b\x0bc\r\n\nd\re\ufeff".encode())
    assert list(read_lines(path)) == [(1, "a\u2028b\x0bc"), (2, ""), (3, "d\re\ufeff")]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8")), min_size=1))
def test_lines_longer_than_what_is_read_at_once(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("lines") / "text.gz"
    path.write_bytes(gzip.compress("".join(f"{text}\n" for text in ["first", *texts]).encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_BYTES_AT_ONCE", 3)
        assert [text for _, text in read_lines(path)] == ["first", *texts]


@pytest.mark.parametrize("num_at_once", [3, 1000])
def test_a_line_that_is_too_long_is_named(tmp_path, monkeypatch, num_at_once):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 20)
    monkeypatch.setattr(lines, "_BYTES_AT_ONCE", num_at_once)
    path = tmp_path / "text"
    for end in (b"", b"\n", b"\nb\n"):
        path.write_bytes(b"a\n" + b"b" * 20 + end)
        assert [len(line) for _, line in read_lines(path)][:2] == [1, 20]
        path.write_bytes(b"a\n" + b"b" * 21 + end)
        with pytest.raises(DataError, match=r"text, line 2: .*20 bytes"):
            list(read_lines(path))


@pytest.mark.slow
def test_an_endless_line_takes_little_memory(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(bytes(100_000_000), 9))
    tracemalloc.start()
    with pytest.raises(DataError, match=r"text\.gz, line 1"):
        list(read_lines(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * files.MAX_LINE_BYTES


def test_a_byte_that_is_not_utf8_is_reported_with_its_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"a\nb\xff\n")
    reading = read_lines(path)
    assert next(reading) == (1, "a")
    with pytest.raises(DataError, match=r"text, line 2: byte 0xff is not UTF-8"):
        next(reading)


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        ("caf\u00e9\n".encode("latin1"), "iconv -f LATIN1"),
        ("\ufeffcafe\n".encode("utf-16-le"), "iconv -f UTF-16"),
        (b"\x89PNG\x00\x01", "does not look like text"),
    ],
)
def test_what_to_do_about_bytes_depends_on_them(tmp_path, content, advice):
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(DataError, match=advice):
        list(read_lines(path))


def test_none_at_all_are_refused_and_some_are_passed_on():
    assert list(refuse_none(iter([0]), complaint="none")) == [0]
    with pytest.raises(DataError, match="none"):
        list(refuse_none([], complaint="none"))

"""JSON made to harm, and what is no plain file, is not read as settings."""

from pathlib import Path

import pytest

from elmore.files.untrusted import read_json
from tests.weights.refusals import assert_refused

BOMBS = {
    "nested lists": b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000,
    "nested and closed": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a long number": b'{"a": ' + b"9" * 5_000 + b"}",
    "a number of 20 digits": b'{"a": ' + b"9" * 20 + b"}",
    "not a number": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
    "not UTF-8": b'{"a": "\xff"}',
    "UTF-16 of half a character": b"\xff\xfe{",
    "a list": b"[]",
    "nothing": b"",
    "null": b"null",
    "cut": b'{"a": ',
    "no string for a key": b"{1: 2}",
    "too large": b" " * (1 << 20) + b"{}",
}


@pytest.mark.parametrize("content", BOMBS.values(), ids=BOMBS)
def test_json_without_settings_is_refused(content, tmp_path):
    (tmp_path / "config.json").write_bytes(content)
    assert_refused(lambda: read_json(tmp_path / "config.json"), r"config\.json")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/proc/self/mem", "/tmp"])
def test_what_is_not_a_plain_file_is_not_read(path):
    if Path(path).exists():
        assert_refused(lambda: read_json(Path(path)))

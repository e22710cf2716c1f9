import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.errors import DataError
from elmore.tasks.data import json_list
from elmore.tasks.data.json_list import read_json_list

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def write(folder, text):
    path = folder / "list.json"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def _small_reads(monkeypatch):
    monkeypatch.setattr(json_list, "_BYTES_AT_ONCE", 5)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.lists(VALUES, max_size=4), VALUES, VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_members_are_those_that_json_reads_at_once(
    tmp_path_factory, members, before, after, is_ascii, indent
):
    entry = {"before": before, "data": members, "after": after}
    text = json.dumps(entry, ensure_ascii=is_ascii, indent=indent)
    path = tmp_path_factory.mktemp("json") / "list.json.gz"
    path.write_bytes(gzip.compress(text.encode("utf-8", "surrogatepass")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_list, "_BYTES_AT_ONCE", 3)
        assert list(read_json_list(path, key="data")) == members


@pytest.mark.parametrize("num_bytes", range(1, 30))
def test_numbers_may_be_cut_anywhere(tmp_path, monkeypatch, num_bytes):
    monkeypatch.setattr(json_list, "_BYTES_AT_ONCE", num_bytes)
    path = write(tmp_path, '{"data": [15e-07, 1.5E+3, -12]}')
    assert list(read_json_list(path, key="data")) == [15e-07, 1500.0, -12]


@pytest.mark.usefixtures("_small_reads")
def test_a_value_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_list, "MAX_VALUE_CHARS", 100)
    path = write(tmp_path, json.dumps({"data": ["a" * 50, "b" * 1000]}))
    reading = read_json_list(path, key="data")
    assert next(reading) == "a" * 50
    with pytest.raises(DataError, match=r"list\.json .*a value has over 100 characters"):
        next(reading)


@pytest.mark.usefixtures("_small_reads")
def test_members_come_before_the_file_has_been_read(tmp_path):
    members = read_json_list(
        write(tmp_path, '{"data": [{"a": "long text"}, 123456789, x'), key="data"
    )
    assert next(members) == {"a": "long text"}
    assert next(members) == 123456789
    with pytest.raises(
        DataError, match=r"list\.json is not the expected JSON .character 42: Expecting"
    ):
        next(members)


@pytest.mark.usefixtures("_small_reads")
def test_a_broken_member_is_noticed_without_reading_all_of_the_file(tmp_path, monkeypatch):
    sizes = []
    read_bytes = json_list.read_bytes
    monkeypatch.setattr(
        json_list,
        "read_bytes",
        lambda *given, **named: sizes.append(1) or read_bytes(*given, **named),
    )
    text = '{"data": [{"a": 1, b: 2}, ' + "[1], " * 1_000 + "[]]}"
    with pytest.raises(DataError, match="character 20"):
        list(read_json_list(write(tmp_path, text), key="data"))
    assert len(sizes) < 10


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected an object with a list under 'data', got 'the end'"),
        ("[1, 2]", "character 1: expected an object"),
        ("{}", "has nothing under 'data'"),
        ('{"a": [1]}', "has nothing under 'data'"),
        ('{"data": {}}', "expected a list under 'data'"),
        ('{"data": [1 2]}', "character 13: expected a comma or the end of the list, got '2'"),
        ('{"data": [1, 2', "expected a comma or the end of the list, got 'the end'"),
        ('{"data": [1, "te', "Unterminated string"),
        ('{"data": [1]', "expected a comma or the end of the object, got 'the end'"),
        ('{"data" [1]}', "expected a colon"),
        ('{"data": [' + "[" * 100_000, "too deeply|Expecting"),
    ],
)
def test_what_is_not_a_list_in_an_object_is_reported(tmp_path, text, complaint):
    with pytest.raises(DataError, match=complaint):
        list(read_json_list(write(tmp_path, text), key="data"))


def test_bytes_that_are_not_utf8_are_reported(tmp_path):
    path = tmp_path / "list.json"
    path.write_bytes('{"data": ["café"]}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"list\.json: byte 0xe9, .* is not UTF-8"):
        list(read_json_list(path, key="data"))

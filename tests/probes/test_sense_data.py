import json
import lzma

import pytest

from elmore.errors import DataError
from elmore.probes.sense_data import SenseTarget, read_first_senses, read_sense_sentences
from elmore.tasks.data import lines

LINE = {
    "tokens": ["The", "Primary_election", "of", "_to", "_"],
    "senses": [
        {"i": 1, "lemma": "Primary_Election", "pos": "NOUN", "key": "primary_election%1:04:00::"},
        {"i": 3, "lemma": "to", "pos": "ADV", "key": "to%4:02:00::;4:02:01::"},
    ],
}
XML = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en">
<text id="d0">
<sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="lung_cancer" pos="NOUN">lung cancer</instance>
<wf lemma="&amp;" pos=".">&amp;</wf>
</sentence>
<sentence id="d0.s1">
<instance id="d0.s1.t0" lemma="play" pos="VERB">Plays</instance>
</sentence>
</text>
</corpus>
"""
KEYS = "d0.s0.t0 lung_cancer%1:26:00::\nd0.s1.t0 play%2:33:00:: play%2:33:01::\n"


def write_framework(folder, *, xml=XML, keys=KEYS):
    (folder / "small.gold.key.txt").write_text(keys)
    path = folder / "small.data.xml"
    path.write_text(xml)
    return path


def test_joined_words_are_tokens_of_their_own_and_a_target_is_a_span(tmp_path):
    path = tmp_path / "semcor.jsonl.xz"
    path.write_bytes(lzma.compress(f"{json.dumps(LINE)}\n\n{json.dumps(LINE)}".encode()))
    first, second = read_sense_sentences(path)
    assert first.tokens == second.tokens == ("The", "Primary", "election", "of", "to", "_")
    assert first.targets == (
        SenseTarget(
            start=1,
            end=3,
            lemma="primary_election",
            part_of_speech="NOUN",
            keys=("primary_election%1:04:00::",),
            name="1.1",
        ),
        SenseTarget(
            start=4,
            end=5,
            lemma="to",
            part_of_speech="ADV",
            keys=("to%4:02:00::", "to%4:02:01::"),
            name="1.3",
        ),
    )
    assert [target.name for target in second.targets] == ["3.1", "3.3"]


def test_the_frameworks_instances_get_their_keys(tmp_path):
    first, second = read_sense_sentences(write_framework(tmp_path))
    assert (first.tokens, second.tokens) == (("The", "lung", "cancer", "&"), ("Plays",))
    (cancer,), (play,) = first.targets, second.targets
    assert (cancer.start, cancer.end, cancer.name) == (1, 3, "d0.s0.t0")
    assert cancer.entry == ("lung_cancer", "NOUN")
    assert play.keys == ("play%2:33:00::", "play%2:33:01::")


def test_lines_longer_than_what_is_read_at_once(tmp_path, monkeypatch):
    path = tmp_path / "semcor.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n" * 3)
    wanted = list(read_sense_sentences(path))
    monkeypatch.setattr(lines, "_BYTES_AT_ONCE", 7)
    assert list(read_sense_sentences(path)) == wanted
    assert len(wanted) == 3


def test_first_senses_are_those_numbered_one(tmp_path):
    path = tmp_path / "index.sense"
    path.write_text(
        "light%1:10:00:: 1 2 3\nlight%1:19:00:: 2 1 9\nlight%3:00:00:: 3 2 1\n"
        "light%5:00:00:easy:00 4 1 2\nlight%4:02:00:: 5 1 0\n"
    )
    assert read_first_senses(path) == {
        ("light", "NOUN"): "light%1:19:00::",
        ("light", "ADJ"): "light%5:00:00:easy:00",
        ("light", "ADV"): "light%4:02:00::",
    }


@pytest.mark.parametrize("line", ["light%1:10:00:: 1 2", "light 1 1 1", "light%9:10:00:: 1 1 1"])
def test_another_file_than_the_index_is_refused(tmp_path, line):
    path = tmp_path / "index.sense"
    path.write_text(f"light%1:10:00:: 1 1 3\n{line}\n")
    with pytest.raises(DataError, match="line 2: expected a sense key"):
        read_first_senses(path)


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": "text"},
        {"tokens": [1, 2]},
        {"tokens": ["a", " "], "senses": []},
        {"senses": [{**LINE["senses"][0], "i": 5}]},
        {"senses": [{**LINE["senses"][0], "i": -1}]},
        {"senses": [{**LINE["senses"][0], "key": "bank"}]},
        {"senses": [{"i": 1}]},
        {"senses": None},
    ],
)
def test_a_line_of_another_kind_is_named(tmp_path, change):
    path = tmp_path / "semcor.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n{json.dumps({**LINE, **change})}\n")
    with pytest.raises(DataError, match=r'line 2: expected ."tokens'):
        list(read_sense_sentences(path))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"\n[1, 2\n", "line 2: expected"),
        (b"\n\xff\n", "line 2: byte 0xff is not UTF-8"),
        (json.dumps(LINE).replace("ADV", "X").encode(), "line 1: expected a lemma and NOUN"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, text, complaint):
    path = tmp_path / "semcor.jsonl"
    path.write_bytes(text)
    with pytest.raises(DataError, match=complaint):
        list(read_sense_sentences(path))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"xml": XML.replace("d0.s1.t0", "d0.s1.t1")}, "line 10: small.gold.key.txt has no sense"),
        ({"xml": XML.replace("d0.s1.t0", "d0.s0.t0")}, "line 10: .* or this id is repeated"),
        ({"xml": XML.replace(' pos="VERB"', "")}, "line 10: expected a lemma and NOUN"),
        ({"xml": XML.replace("Plays", " ")}, "line 10: a <instance> has no text"),
        ({"xml": XML.replace("</text>", "")}, r"is not XML \(.*line 13"),
        (
            {"xml": XML.replace("<corpus", "<!DOCTYPE c [<!ENTITY a 'b'>]>\n<corpus")},
            "line 2: a doc",
        ),
        ({"keys": f"{KEYS}d0.s9.t0 x%1:00:00::\n"}, "has a sense for 'd0.s9.t0', which is not in"),
        ({"keys": "\nd0.s0.t0\n"}, "line 2: expected a name and sense keys"),
        ({"keys": "d0.s0.t0 lung\n"}, "line 1: expected a name and sense keys"),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, change, complaint):
    with pytest.raises(DataError, match=complaint):
        list(read_sense_sentences(write_framework(tmp_path, **change)))


def test_missing_files_and_unknown_forms(tmp_path):
    path = write_framework(tmp_path)
    (tmp_path / "small.gold.key.txt").unlink()
    with pytest.raises(DataError, match=r"small\.gold\.key\.txt; put the senses next to"):
        list(read_sense_sentences(path))
    with pytest.raises(DataError, match="there is no file"):
        list(read_sense_sentences(tmp_path / "no.jsonl"))
    with pytest.raises(DataError, match="has an unknown format"):
        read_sense_sentences(tmp_path / "semcor.txt")

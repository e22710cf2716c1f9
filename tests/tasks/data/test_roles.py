import json
import lzma

import pytest

from elmore.errors import DataError
from elmore.tasks.data.role_examples import RoleExample
from elmore.tasks.data.roles import read_role_sentences, read_roles
from tests.tasks.data.places import find_data

FRAME = {"pred": 1, "lemma": "sell", "sense": "sell.01", "tags": ["B-ARG0", "B-V", "B-A1", "I-A1"]}
LINE = {"words": ["They", "sold", "two", "cars"], "frames": [FRAME], "pos": []}


def write(folder, *entries, name="roles.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def test_an_example_a_predicate_and_none_for_a_sentence_without(tmp_path):
    other = {**FRAME, "pred": 3, "lemma": "car", "sense": "car.01", "tags": ["O", "O", "O", "B-V"]}
    path = write(tmp_path, {**LINE, "frames": [FRAME, other]}, {**LINE, "frames": []})
    packed = tmp_path / "roles.jsonl.xz"
    packed.write_bytes(lzma.compress(path.read_bytes()))
    first, second = read_roles(packed)
    assert first == RoleExample(
        tokens=("They", "sold", "two", "cars"),
        predicate=1,
        lemma="sell",
        sense="sell.01",
        tags=("B-ARG0", "B-V", "B-A1", "I-A1"),
    )
    assert (second.predicate, second.sense, second.tags) == (3, "car.01", ("O", "O", "O", "B-V"))
    both, none = read_role_sentences(path)
    assert both.examples == (first, second)
    assert (none.tokens, none.examples) == (first.tokens, ())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"pred": 4}, "'sell' has index 4, but the sentence has tokens 0 to 3"),
        ({"pred": -1}, "has index -1"),
        ({"tags": ["O", "B-V", "O"]}, "'sell' has 3 tags for 4 tokens"),
        ({"tags": ["O", "B-V", "O", "I-A1"]}, "expected BIO tags, .* got 'I-A1' after 'O'"),
        ({"tags": ["I-A1", "B-V", "O", "O"]}, "expected BIO tags, .* got 'I-A1' after 'O'"),
        ({"tags": ["O", "B-V", "B-A0", "I-A1"]}, "expected BIO tags, .* got 'I-A1' after 'B-A0'"),
        ({"tags": ["O", "B-V", "B-", "O"]}, "expected BIO tags, .* got 'B-' after"),
        ({"tags": ["O", "B-V", "E-A1", "O"]}, "expected BIO tags, .* got 'E-A1' after"),
        ({"tags": ["O", "V", "O", "O"]}, "expected BIO tags, .* got 'V' after"),
        ({"pred": "1"}, 'expected {"words"'),
        ({"pred": True}, 'expected {"words"'),
        ({"lemma": None}, 'expected {"words"'),
        ({"tags": "OOOO"}, 'expected {"words"'),
        ({"tags": [1, 2, 3, 4]}, 'expected {"words"'),
    ],
)
def test_frames_that_are_invalid_are_reported_with_their_lines(tmp_path, change, complaint):
    path = write(tmp_path, LINE, {**LINE, "frames": [{**FRAME, **change}]})
    with pytest.raises(DataError, match=rf"roles\.jsonl, line 2: .*{complaint}"):
        list(read_roles(path))


@pytest.mark.parametrize(
    "line", ["[1", "7", "{}", '{"words": ["a"]}', '{"words": [], "frames": []}', "[" * 10_000]
)
def test_lines_of_another_kind_are_reported(tmp_path, line):
    path = tmp_path / "roles.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n\n{line}\n")
    with pytest.raises(DataError, match=r'line 3: expected {"words"'):
        list(read_roles(path))


@pytest.mark.parametrize("name", ["roles.jsonl", "roles.conll"])
def test_files_without_sentences_or_predicates_are_refused(tmp_path, name):
    with pytest.raises(DataError, match="has no sentences"):
        list(read_roles(write(tmp_path, name=name)))
    with pytest.raises(DataError, match="has no predicates"):
        list(read_roles(write(tmp_path, {**LINE, "frames": []})))


@pytest.mark.parametrize(
    ("part", "num_sentences", "num_predicates"),
    [("train", 12_506, 40_423), ("dev", 1_963, 4_960), ("test", 2_054, 4_795)],
)
def test_the_web_treebank_has_its_predicates(part, num_sentences, num_predicates):
    sentences = list(read_role_sentences(find_data(f"srl_ewt/{part}.jsonl")))
    assert len(sentences) == num_sentences
    assert sum(len(sentence.examples) for sentence in sentences) == num_predicates


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"words": ["a"]', "it is not JSON"),
        ("[1]", "it is not an object"),
        ('{"words": ["a", 1], "frames": []}', "'words' is missing or not a list of words"),
        ('{"words": ["a"]}', "'frames' is missing"),
        ('{"words": ["a"], "frames": [1]}', "frame 1 is not an object"),
        (
            '{"words": ["a"], "frames": [{"pred": "0", "lemma": "", "sense": "", "tags": []}]}',
            "'pred' of frame 1 is missing or has the wrong type",
        ),
    ],
)
def test_the_field_that_is_wrong_is_named(tmp_path, line, message):
    path = tmp_path / "x.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(DataError, match=f"line 1: expected .*, but {message}"):
        list(read_roles(path))

import json

import pytest

from elmore.errors import DataError
from elmore.tasks.data.role_predicates import read_predicates

TOKENS = ("They", "sold", "used", "cars")
COLUMNS = """\
#begin document (a/b); part 000
a/b 0 0 They PRP (S* - - - Ann * (ARG0*) * (3)
a/b 0 1 sold VBD * sell 01 1 Ann * (V*) * -
a/b 0 2 used VBN * use 02 - Ann * (ARG1* (V*) -
a/b 0 3 cars NNS *) car - - Ann * *) (ARG1*) -

a/b 0 0 Yes UH * - - - Ann * -
#end document
"""
ENTRY = {
    "words": list(TOKENS),
    "frames": [
        {
            "pred": 1,
            "lemma": "sell",
            "sense": "sell.01",
            "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"],
        },
        {"pred": 2, "lemma": "use", "sense": "use.02", "tags": ["O", "O", "B-V", "B-ARG1"]},
    ],
}


def write(folder, text, name):
    path = folder / name
    path.write_text(text)
    return path


def without_arguments(columns):
    """Leave out the columns of arguments; the framesets stay."""
    rows = [line.split(" ") for line in columns.splitlines()]
    return "\n".join(" ".join(row[:11] + row[-1:] if len(row) > 11 else row) for row in rows)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("roles.jsonl", json.dumps(ENTRY)),
        ("roles.jsonl", json.dumps({"words": TOKENS, "frames": [{"pred": 1}, {"pred": 2}]})),
        ("roles.jsonl", json.dumps(ENTRY).replace("B-ARG1", "nonsense")),
        ("roles.conll", COLUMNS),
        ("roles.conll", without_arguments(COLUMNS)),
        ("roles.conll", COLUMNS.replace(" 01 ", " - ").replace(" 02 ", " - ")),
        ("roles.conll", COLUMNS.replace("(ARG1*)", "nonsense")),
    ],
)
def test_without_arguments_the_predicates_are_read(tmp_path, name, text):
    examples = list(read_predicates(write(tmp_path, text, name)))
    assert [(example.tokens, example.predicate) for example in examples] == [
        (TOKENS, 1),
        (TOKENS, 2),
    ]
    assert {example.tags for example in examples} == {()}


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("roles.jsonl", '{"words": ["a"], "frames": [{"pred": 1}]}', 'line 2: expected {"words"'),
        ("roles.jsonl", '{"words": ["a"], "frames": [{"pred": true}]}', "line 2"),
        ("roles.jsonl", '{"words": ["a"], "frames": [{"pred": -1}]}', "line 2"),
        ("roles.jsonl", '{"words": ["a"], "frames": [{}]}', "line 2"),
        ("roles.jsonl", '{"words": ["a"], "frames": [1]}', "line 2"),
        ("roles.jsonl", '{"words": ["a", ""], "frames": []}', "line 2"),
        ("roles.jsonl", '{"words": "a", "frames": []}', "line 2"),
        ("roles.jsonl", '{"words": ["a"]}', "line 2"),
        ("roles.jsonl", "[" * 10_000, "line 2"),
        ("roles.jsonl", '{"words": ["a"], "frames": []}', "has no predicates"),
        ("roles.conll", "a/b 0 0 Yes", "line 2: expected 12 columns of CoNLL-2012, got 4"),
        ("roles.conll", COLUMNS.replace("(V*) -", "(V*)"), "line 5: expected 14 columns .* got 13"),
        ("roles.conll", "a/b 0 0 Yes UH * - - - Ann * -", "has no predicates"),
    ],
)
def test_what_cannot_be_read_is_reported(tmp_path, name, text, complaint):
    with pytest.raises(DataError, match=rf"{name}.*{complaint}"):
        list(read_predicates(write(tmp_path, f"\n{text}\n", name)))

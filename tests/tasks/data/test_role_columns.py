import pytest

from elmore.errors import DataError
from elmore.tasks.data.roles import read_role_sentences, read_roles

COLUMNS = """\
#begin document (a/b); part 000
a/b 0 0 They PRP (S* - - - Ann * (ARG0*) * (3)
a/b 0 1 sold VBD * sell 01 1 Ann * (V*) * -
a/b 0 2 used VBN * use 02 - Ann * (ARG1* (V*) -
a/b 0 3 cars NNS *) - - - Ann * *) (ARG1*) -

a/b 0 0 Yes UH * - - - Ann * -
#end document
"""


def test_columns_of_conll_2012_say_the_same(tmp_path):
    path = tmp_path / "roles.conll"
    path.write_text(COLUMNS)
    sold, used = read_roles(path)
    assert sold.tokens == used.tokens == ("They", "sold", "used", "cars")
    assert (sold.predicate, sold.lemma, sold.sense) == (1, "sell", "sell.01")
    assert sold.tags == ("B-ARG0", "B-V", "B-ARG1", "I-ARG1")
    assert (used.predicate, used.sense, used.tags) == (2, "use.02", ("O", "O", "B-V", "B-ARG1"))
    assert [len(sentence.examples) for sentence in read_role_sentences(path)] == [2, 0]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("(ARG1* (V*) -", "(ARG1* (V*)", "line 4: expected 14 columns of CoNLL-2012, got 13"),
        (" *) (ARG1*) -", " * (ARG1*) -", r"line 2, column 12: \(ARG1\* does not close"),
        ("* (V*) * -", "* *) * -", r"line 2, column 12: word 1 has '\*\)'"),
        ("* (V*) * -", "* V * -", "line 2, column 12: word 1 has 'V'"),
        (" *) (ARG1*) -", " (A2*) (ARG1*) -", r"column 12: word 3 has '\(A2\*\)'"),
        ("(ARG1* (V*)", "(ARG1* *", "line 2, column 13: no word is marked as the predicate"),
    ],
)
def test_columns_that_are_invalid_are_reported(tmp_path, old, new, complaint):
    path = tmp_path / "roles.conll"
    assert COLUMNS.count(old) == 1
    path.write_text(COLUMNS.replace(old, new))
    with pytest.raises(DataError, match=complaint):
        list(read_roles(path))

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.errors import DataError
from elmore.tasks.data.trees import LabeledSpan, parse_tree, read_trees
from tests.tasks.data.places import find_data

LABELS = st.sampled_from("01234")
TREES = st.recursive(
    st.tuples(LABELS, st.text("ab'é\u00a0", min_size=1)),
    lambda trees: st.tuples(LABELS, st.lists(trees, min_size=1, max_size=4)),
)


def show(tree):
    """Write a tree, which is a label and either a token or trees."""
    label, inside = tree
    parts = inside if isinstance(inside, str) else " ".join(show(each) for each in inside)
    return f"({label} {parts})"


def list_phrases(tree, start=0):
    """Return tokens, and (start, end, label) of the whole and of all inside it."""
    label, inside = tree
    if isinstance(inside, str):
        return [inside], [(start, start + 1, label)]
    tokens, phrases = [], []
    for each in inside:
        more_tokens, more_phrases = list_phrases(each, start + len(tokens))
        tokens += more_tokens
        phrases += more_phrases
    return tokens, [(start, start + len(tokens), label), *phrases]


def test_a_tree_read_by_hand():
    tree = parse_tree("(3 (2 Very) (4 (2 well) (3 made)))", where="")
    assert tree.tokens == ("Very", "well", "made")
    assert tree.label == "3"
    assert tree.spans == (
        LabeledSpan(start=0, end=3, label="3"),
        LabeledSpan(start=0, end=1, label="2"),
        LabeledSpan(start=1, end=3, label="4"),
        LabeledSpan(start=1, end=2, label="2"),
        LabeledSpan(start=2, end=3, label="3"),
    )


@settings(deadline=None)
@given(TREES)
def test_a_written_tree_is_read_back(tree):
    tokens, phrases = list_phrases(tree)
    found = parse_tree(show(tree), where="")
    assert found.tokens == tuple(tokens)
    assert [(span.start, span.end, span.label) for span in found.spans] == phrases


def test_brackets_and_slashes_are_themselves_again():
    tree = parse_tree(r"(2 (2 -LRB-) (2 and\/or) (2 \*) (2 -RRB-) (2 a\b))", where="")
    assert tree.tokens == ("(", "and/or", "*", ")", r"a\b")


def test_depth_is_not_limited_by_recursion():
    assert len(parse_tree("(2 " * 5_000 + "deep" + ")" * 5_000, where="").spans) == 5_000


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("(3 (2 Very) (4 good)", "1 of the brackets do not close"),
        ("(3 (2 Very) (4 good)))", r"'\)' is outside all brackets"),
        ("(3 (2 Very) (4 good)) (2 x)", "a second tree begins"),
        ("(3 (2 Very) (7 good))", "the label '7' is not one of 0, 1, 2, 3, 4"),
        ("(3 (2 Very) good)", "the token 'good' has no label of its own"),
        ("(3 Very good)", "the token 'good' has no label"),
        ("(3 Very (2 good))", "a phrase begins next to the token 'Very'"),
        ("(3 (2 Very) (4))", "a phrase labeled '4' has no token"),
        ("((2 Very) (4 good))", r"a bracket is followed by '\(' instead"),
        ("(3 ()", r"a bracket is followed by '\)' instead"),
        ("(", "1 of the brackets do not close"),
        ("Very good", "'Very' is outside all brackets"),
    ],
)
def test_broken_trees_are_reported_with_their_lines(tmp_path, line, complaint):
    path = tmp_path / "trees.txt"
    path.write_text(f"(3 good)\n\n{line}\n")
    trees = read_trees(path)
    assert next(trees).tokens == ("good",)
    with pytest.raises(DataError, match=rf"trees\.txt, line 3: .*{complaint}"):
        next(trees)


def test_labels_are_a_choice_and_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "trees.txt"
    path.write_text("(NP (DT the) (NN play))")
    assert next(read_trees(path, labels=None)).label == "NP"
    path.write_text("\n")
    with pytest.raises(DataError, match="has no trees"):
        list(read_trees(path))


@pytest.mark.parametrize(("part", "num_trees"), [("train", 8_544), ("dev", 1_101), ("test", 2_210)])
def test_the_sentiment_treebank_has_its_trees(part, num_trees):
    trees = list(read_trees(find_data(f"sst/{part}.txt")))
    assert len(trees) == num_trees
    assert {tree.label for tree in trees} == set("01234")
    # Its trees are binary.
    assert all(len(tree.spans) == 2 * len(tree.tokens) - 1 for tree in trees)

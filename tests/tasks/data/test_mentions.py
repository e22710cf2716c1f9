import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.errors import DataError
from elmore.tasks.data.mentions import MentionReader

NUM_TOKENS = 6
SPANS = st.integers(0, NUM_TOKENS - 1).flatmap(
    lambda start: st.tuples(st.just(start), st.integers(start + 1, NUM_TOKENS))
)


def read(*cells):
    """Read one sentence."""
    reader = MentionReader()
    for number, cell in enumerate(cells, start=1):
        reader.read(cell, where=f"line {number}")
    reader.end_sentence()
    return reader.clusters


def cross(one, other):
    """Say whether two spans overlap and neither is inside the other."""
    first, second = sorted([one, other])
    return first[0] < second[0] < first[1] < second[1]


def write_cells(clusters, joint):
    """Write the brackets of clusters, a cell a token; the longest mention begins first."""
    begins, ends = [[] for _ in range(NUM_TOKENS)], [[] for _ in range(NUM_TOKENS)]
    mentions = [(name, span) for name, spans in enumerate(clusters) for span in spans]
    for name, (start, end) in sorted(mentions, key=lambda mention: mention[1][0] - mention[1][1]):
        begins[start].append(f"({name})" if end == start + 1 else f"({name}")
        if end > start + 1:
            ends[end - 1].insert(0, f"{name})")
    # Without a joint, "(1" and "0)" would be "(10)".
    parts = zip(begins, ends, strict=True) if joint else zip(ends, begins, strict=True)
    return [joint.join(first + second) for first, second in parts]


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.lists(SPANS, unique=True, min_size=1, max_size=4), max_size=4), st.booleans())
def test_written_clusters_are_read_back(clusters, is_joined):
    # Of one cluster's mentions that cross, brackets cannot tell which ends first.
    clusters = [
        [span for place, span in enumerate(spans) if not any(cross(span, s) for s in spans[:place])]
        for spans in clusters
    ]
    wanted = sorted(tuple(sorted(spans)) for spans in clusters)
    assert list(read(*write_cells(clusters, "|" if is_joined else ""))) == wanted


def test_brackets_read_by_hand():
    assert read("(1", "-", "(2)|1)") == (((0, 3),), ((2, 3),))
    assert read("(1(2)", "_", "1)(2)", "*") == (((0, 1), (2, 3)), ((0, 3),))
    # Of one cluster inside itself, the inner mention ends first.
    assert read("(1", "(1", "1)", "1)") == (((0, 4), (1, 3)),)


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        (["(1", "x"], "line 2: expected brackets of mentions, .* got 'x'"),
        (["(1", "1))"], r"line 2: expected brackets .* got '1\)\)'"),
        (["(1", "1"], "line 2: expected brackets .* got '1'"),
        (["((1)"], "line 1: expected brackets .* got"),
        (["(1", "2)"], r"line 2: '2\)' ends a mention of cluster 2 that has not begun"),
        (["-", "(1", "(2", "2)"], r"line 2: the mention \(1 does not end in its sentence"),
        (["(2", "(1"], r"line 1: the mention \(2 does not end"),
        (["(1(1", "1)1)"], "line 2: .* the same mention of cluster 1 twice"),
    ],
)
def test_brackets_that_do_not_fit_are_reported(cells, complaint):
    with pytest.raises(DataError, match=complaint):
        read(*cells)

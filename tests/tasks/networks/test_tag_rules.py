from itertools import pairwise, product

import pytest
import torch

from elmore.errors import DataError
from elmore.tasks.metrics.tag_schemes import TagScheme, read_spans, write_tags
from elmore.tasks.networks.tag_rules import allow_all, find_transitions

# As data may have them: in no order, one type without its inner tag, one with hyphens.
LABELS = {
    TagScheme.IOB2: ["B-PER", "O", "I-C-LOC", "B-C-LOC", "I-PER", "B-X"],
    TagScheme.BIOES: ["E-PER", "O", "B-PER", "S-PER", "I-C-LOC", "B-C-LOC", "E-C-LOC", "S-X"],
    TagScheme.BILOU: ["L-PER", "O", "B-PER", "U-PER", "I-C-LOC", "B-C-LOC", "L-C-LOC", "U-X"],
}


@pytest.mark.parametrize("scheme", LABELS)
def test_allowed_taggings_are_those_that_the_scheme_writes(scheme):
    labels = LABELS[scheme]
    rules = find_transitions(labels, scheme=scheme)
    starts, follows, ends = (
        allowed.tolist() for allowed in (rules.starts, rules.follows, rules.ends)
    )
    num_allowed = 0
    for num_tokens in (1, 2, 3, 4):
        for tagging in product(range(len(labels)), repeat=num_tokens):
            tags = [labels[label] for label in tagging]
            is_written = write_tags(read_spans(tags), num_tokens=num_tokens, scheme=scheme) == tags
            is_allowed = (
                starts[tagging[0]]
                and all(follows[before][after] for before, after in pairwise(tagging))
                and ends[tagging[-1]]
            )
            assert is_allowed == is_written, tags
            num_allowed += is_allowed
    assert num_allowed > 100


def test_scores_forbid_by_minus_infinity_and_allow_by_0():
    scores = find_transitions(["O", "B-A", "E-A"], scheme=TagScheme.BIOES).as_scores()
    no = -torch.inf
    assert scores["starts"].tolist() == [0, 0, no]
    assert scores["transitions"].tolist() == [[0, 0, no], [no, no, 0], [0, 0, no]]
    assert scores["ends"].tolist() == [0, no, 0]
    assert all((each == 0).all() for each in allow_all(3).as_scores().values())


@pytest.mark.parametrize("label", ["E-PER", "PER", "", "BI-PER", "b-PER"])
def test_labels_of_another_scheme_are_named(label):
    with pytest.raises(DataError, match=f"{label!r} is invalid in the scheme iob2; use O, or"):
        find_transitions(["O", label], scheme=TagScheme.IOB2)


def test_iob1_has_no_such_rules():
    with pytest.raises(ValueError, match="expected one of iob2, bioes, bilou, got iob1"):
        find_transitions(["O"], scheme=TagScheme.IOB1)

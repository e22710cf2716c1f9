"""Probabilities of tags are those of all taggings, counted one by one."""

import math

import pytest

from tests.tasks.networks.test_crf import LENGTHS, list_taggings, make_case, make_rules


@pytest.mark.parametrize("has_rules", [False, True])
def test_probabilities_of_runs_are_those_of_all_taggings_counted(has_rules):
    crf, scores, lengths = make_case(make_rules() if has_rules else None)
    chains = crf.decode_chains(scores, lengths)
    assert [chain.labels for chain in chains] == crf.decode(scores, lengths)
    for row, (chain, length) in enumerate(zip(chains, LENGTHS, strict=True)):
        taggings = list_taggings(crf, scores[row, :length])
        total = sum(map(math.exp, taggings.values()))
        for start in range(length):
            for end in range(start + 1, length + 1):
                wanted = tuple(chain.labels[start:end])
                inside = [t for t in taggings if t[start:end] == wanted]
                share = sum(math.exp(taggings[tagging]) for tagging in inside) / total
                assert chain.probability(start, end) == pytest.approx(share, rel=1e-5)

import pytest

from elmore.comparison.layers import find_layer_rows
from tests.comparison.made_up import make_comparison, make_run


def test_shares_are_averaged_over_seeds_by_hand():
    shares = [[0.2, 0.5, 0.3], [0.4, 0.5, 0.1]]
    runs = [
        make_run("both", seed=seed, scale={"below": 1.0 + seed},
                 layer_shares={"below": shares[seed], "above": shares[0]})
        for seed in (0, 1)
    ]  # fmt: skip
    below, above = find_layer_rows(make_comparison(runs), share=1.0)
    assert (below.variant, below.position_name, below.scale) == ("both", "input", 1.5)
    assert below.means == pytest.approx([0.3, 0.5, 0.2])
    assert below.deviations == pytest.approx([0.02**0.5, 0.0, 0.02**0.5])
    assert (above.position_name, above.scale) == ("output", None)
    assert above.means == shares[0]


def test_only_mixes_that_were_learned_at_the_share_have_a_row():
    runs = [
        make_run("without"),
        make_run("top"),
        make_run("average"),
        make_run("input", share=0.1),
        make_run("own", layer_shares={"below": [1.0], "side": [0.9, 0.1]}),
    ]
    (row,) = find_layer_rows(make_comparison(runs), share=1.0)
    assert (row.variant, row.position_name, row.deviations) == ("own", "side", [None, None])

import sys
from itertools import pairwise

import pytest

from elmore.comparison.drawing import find_looks, plot_settings, spread_out
from elmore.errors import MissingExtraError


def test_labels_do_not_lie_on_each_other_and_stay_beside_the_panel():
    assert spread_out([0.1, 0.5, 0.9], gap=0.1) == [0.1, 0.5, 0.9]
    for heights in ([0.5, 0.5, 0.5], [0.9, 0.95, 1.0], [-3.0, 0.0, 0.01], [-1.0, 2.0]):
        places = spread_out(heights, gap=0.1)
        assert min(b - a for a, b in pairwise(places)) > 0.0999
        assert 0 <= places[0] < places[-1] <= 1
    assert spread_out([], gap=0.1) == []


def test_variants_look_different_however_many_there_are():
    looks = find_looks([str(number) for number in range(24)]).values()
    assert len({(look.color, look.marker, look.dash) for look in looks}) == 24
    # In grayscale, only markers distinguish the first few.
    assert len({look.marker for look in list(looks)[:8]}) == 8


def test_the_settings_of_the_user_are_neither_used_nor_changed():
    matplotlib = pytest.importorskip("matplotlib", reason="needs elmore[plot]")
    with matplotlib.rc_context({"font.size": 33.0, "svg.hashsalt": "mine"}):
        with plot_settings():
            assert matplotlib.rcParams["font.size"] == 10.0
        assert matplotlib.rcParams["font.size"] == 33.0
        assert matplotlib.rcParams["svg.hashsalt"] == "mine"


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"elmore\[plot\]"), plot_settings():
        pass

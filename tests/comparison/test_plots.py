import xml.etree.ElementTree as ET

import pytest

from elmore.comparison.plots import (
    draw_curves,
    draw_layers,
    draw_plots,
    draw_sample_efficiency,
    find_curve,
)
from tests.comparison.made_up import make_comparison, make_point, make_run, make_runs

ODD = "a$b$_<她>\x00\n&"
COMPARISON = make_comparison(
    [
        *make_runs("without", [60.0, 61.0], share=0.1),
        *make_runs("without", [80.0, 82.0]),
        *make_runs("input", [74.0, 75.0], share=0.1),
        *make_runs("input", [84.0, 85.5]),
        *make_runs(ODD, [83.0, 83.0]),
    ]
)


needs_matplotlib = pytest.mark.usefixtures("_matplotlib")


@pytest.fixture
def _matplotlib():
    pytest.importorskip("matplotlib", reason="needs elmore[plot]")


@pytest.fixture(scope="module")
def plots():
    pytest.importorskip("matplotlib", reason="needs elmore[plot]")
    return {plot.title: plot for plot in draw_plots(COMPARISON)}


def read_words(plot):
    """Return the words of an SVG, which must be XML."""
    root = ET.fromstring(plot.svg)
    return {element.text for element in root.iter() if element.tag.endswith("text")}


@pytest.mark.slow
def test_the_same_results_give_the_same_bytes(plots):
    assert len(plots) == 4
    assert draw_plots(COMPARISON) == list(plots.values())


def test_every_plot_is_xml_on_white_and_names_its_variants(plots):
    for plot in plots.values():
        words = read_words(plot)
        assert {"input"} <= {word.removesuffix(": input") for word in words if word}
        assert "fill: #ffffff" in plot.svg
        assert plot.alt
        assert plot.caption


def test_variants_are_shown_with_their_numbers(plots):
    plot = plots["Variants"]
    words = read_words(plot)
    odd = "a$b$_<她>\ufffd &"
    assert {"without", "input", odd, "81.00 ± 1.41", "84.75 ± 1.06", "f1 on test"} <= words
    assert "1,000 training examples" in plot.caption
    assert "ELMo at the input 84.75 ± 1.06" in plot.alt


@needs_matplotlib
def test_fewer_examples_are_shown_for_variants_that_had_fewer(plots):
    words = read_words(plots["With fewer examples"])
    assert {"without", "input", "1,000", "100", "10 %", "100 %"} <= words
    assert not any(word and "她" in word for word in words)
    assert draw_sample_efficiency(make_comparison(make_runs("without", [80.0]))) is None


@needs_matplotlib
def test_layers_are_shown_in_percent(plots):
    words = read_words(plots["Layer weights"])
    assert {"tokens", "layer 1", "layer 2", "20 ± 0", "50 ± 0", "× 1.50"} <= words
    single = make_comparison([make_run("own"), make_run("input", layer_shares={"b": [0.9, 0.1]})])
    assert {"20", "90", "10", "input: b"} <= read_words(draw_layers(single))
    assert draw_layers(make_comparison([make_run(), make_run("top")])) is None


@needs_matplotlib
def test_curves_are_shown_of_runs_that_kept_them(plots):
    words = read_words(plots["Learning curves"])
    assert {"without", "input", "epoch", "f1 on dev"} <= words
    assert "clip-path" in plots["Learning curves"].svg  # the first epochs may be below the panel
    assert draw_curves(make_comparison([make_run(curve=[])])) is None
    flat = [make_point(1, dev=50.0)]
    assert "epoch" in read_words(draw_curves(make_comparison([make_run(curve=flat)])))


@pytest.mark.slow
@needs_matplotlib
def test_scores_with_formula_signs_are_words():
    runs = [make_run(share=share, scores={"dev": {"$f$": 3.0}}) for share in (0.1, 1.0)]
    plots = draw_plots(make_comparison(runs, main_score="$f$"))
    assert [plot.title for plot in plots if "$f$ on dev" in read_words(plot)] == [
        "Variants",
        "With fewer examples",
        "Learning curves",
    ]


def make_curve(scores):
    return [make_point(epoch, dev=score) for epoch, score in enumerate(scores, start=1)]


def test_a_mean_is_over_all_seeds_and_those_that_train_longer_have_a_tail():
    seeds = ([10.0, 50.0, 60.0], [20.0, 40.0, 70.0, 80.0, 75.0])
    runs = [make_run(seed=seed, curve=make_curve(scores)) for seed, scores in enumerate(seeds)]
    for order in (runs, runs[::-1]):
        curve = find_curve(order)
        assert (curve.epochs, curve.means) == ([1, 2, 3], [15.0, 45.0, 65.0])
        assert curve.tails == [{3: 70.0, 4: 80.0, 5: 75.0}]
    assert find_curve([make_run(curve=[]), make_run(seed=1)]) is None
    assert find_curve([]) is None


def test_the_steep_start_does_not_set_the_panel():
    curve = find_curve([make_run(curve=make_curve([0.0, 5.0, *[70.0 + k for k in range(8)]]))])
    assert curve.find_floor() == 70.0
    short = find_curve([make_run(curve=make_curve([3.0, 70.0]))])
    assert short.find_floor() == 3.0

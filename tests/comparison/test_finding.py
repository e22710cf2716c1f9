import json

import pytest

from elmore.comparison.finding import JUDGMENTS, describe_finding, describe_need
from elmore.comparison.page import make_page
from elmore.comparison.result_files import write_comparison
from elmore.comparison.sample_efficiency import Need
from elmore.comparison.summary import Verdict, summarize
from elmore.comparison.text_table import write_table
from tests.comparison.made_up import make_comparison, make_run, make_runs

WITHOUT = make_runs("without", [80.0, 82.0, 81.0])


def find(*runs):
    comparison = make_comparison(runs)
    return describe_finding(comparison, summarize(comparison))


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        (
            [84.0, 85.0, 86.0],
            "With ELMo at the input, f1 on test is 85.0 ± 1.0, 4.0 points higher than without "
            "ELMo (81.0 ± 1.0), over 3 seeds; 21 % fewer errors.",
        ),
        (
            [80.25, 82.0, 81.25],
            "With ELMo at the input, f1 on test is 81.17 ± 0.88, 0.17 points higher than without "
            "ELMo (81.00 ± 1.00), over 3 seeds; this is within the variation between seeds.",
        ),
        (
            [70.0, 72.0, 71.0],
            "No gain: with ELMo at the input, f1 on test is 71.0 ± 1.0, 10.0 points lower than "
            "without ELMo (81.0 ± 1.0), over 3 seeds.",
        ),
        (
            [80.0, 82.0, 81.0],
            "No gain: with ELMo at the input, f1 on test is 81.00 ± 1.00, the same as without ELMo "
            "(81.00 ± 1.00), over 3 seeds.",
        ),
        (
            [84.0],
            "With ELMo at the input, f1 on test is 84.0, 3.0 points higher than without ELMo "
            "(81.0 ± 1.0), over 1 and 3 seeds; 16 % fewer errors; this may be chance.",
        ),
    ],
)
def test_the_sentence_says_what_the_numbers_say(scores, sentence):
    assert find(*WITHOUT, *make_runs("input", scores)) == sentence


def test_one_seed_each_is_said():
    assert find(make_run(test=80.0), make_run("both", test=85.0)) == (
        "With ELMo at the input and the output, f1 on test is 85.0, 5.0 points higher than "
        "without ELMo (80.0), from one seed; 25 % fewer errors; this may be chance."
    )
    assert find(make_run(test=99.99), make_run("input", test=99.49)) == (
        "No gain: with ELMo at the input, f1 on test is 99.49, 0.50 points lower than without "
        "ELMo (99.99), from one seed; this may be chance."
    )


def test_of_several_uses_the_choice_is_said():
    found = find(*WITHOUT, *make_runs("input", [84.0]), *make_runs("own <use>", [90.0]))
    assert found.startswith(
        "With ELMo used as “own <use>” (the best on dev of 2 variants), f1 on test is 90.0"
    )


def test_what_is_missing_is_said():
    assert find(*WITHOUT) == (
        "Without ELMo, f1 on test is 81.00 ± 1.00, over 3 seeds. "
        "There is no run with ELMo on as many examples yet."
    )
    assert find(make_run("input", test=84.0)) == (
        "With ELMo at the input, f1 on test is 84.00, from one seed. "
        "There is no run without ELMo on as many examples to compare with."
    )


def test_every_verdict_has_words():
    assert set(JUDGMENTS) == set(Verdict)


@pytest.mark.parametrize(
    ("num_train", "is_bound", "words"),
    [
        (250, False, "With ELMo at the input, about 250 examples (25 %) are enough for the 80.00 "),
        (100, True, "With ELMo at the input, at most 100 examples (10 %) are enough for the 80.00"),
        (None, False, "With ELMo at the input, the 80.00 that the network without ELMo reaches "
         "with 1,000 examples was not reached."),
    ],
)  # fmt: skip
def test_examples_saved_are_said(num_train, is_bound, words):
    need = Need(
        variant="input",
        target=80.0,
        baseline_num_train=1000,
        num_train=num_train,
        is_bound=is_bound,
    )
    assert describe_need(need).startswith(words)


def make_unlearned(*, shares=(1.0,)):
    """A comparison of two variants of which both predict one label for everything."""
    runs = [
        make_run(
            variant, share=share, seed=seed, test=52.0, constant_scores={"dev": 53.0, "test": 52.0}
        )
        for variant in ("without", "input")
        for share in shares
        for seed in range(3)
    ]
    return make_comparison(runs)


def test_where_neither_learned_that_is_what_is_said():
    comparison = make_unlearned()
    assert describe_finding(comparison, summarize(comparison)) == (
        "Neither network learned: with ELMo at the input, f1 on test is 52.00 ± 0.00; without ELMo "
        "it is 52.00 ± 0.00, over 3 seeds; a constant prediction scores 52.00. Train longer, on "
        "more examples or with other settings before comparing."
    )


def test_where_neither_learned_no_report_has_an_interval_or_counts_examples(tmp_path):
    comparison = make_unlearned(shares=(0.1, 1.0))
    text = write_table(comparison)
    write_comparison(comparison, tmp_path / "report.json")
    written = json.loads((tmp_path / "report.json").read_text())
    page = make_page(comparison, plots=[], command="elmore compare")
    for report in (text, written["finding"], page):
        assert "Neither network learned: " in report
    for report in (text, page):
        assert "+0.00" not in report
        assert "are enough" not in report
        assert "the number of examples that ELMo saves is unknown" in report
    verdicts = {cell["gain"]["verdict"] for cell in written["cells"] if cell["gain"]}
    assert verdicts == {"neither learned"}
    assert {cell["has_learned"] for cell in written["cells"]} == {False}
    assert all(cell["gain"]["interval"] is None for cell in written["cells"] if cell["gain"])


def test_a_baseline_that_learned_nothing_is_not_a_target():
    runs = [
        *(make_run(share=share, test=52.0, constant_scores={"test": 52.0}) for share in (0.1, 1)),
        *(make_run("input", share=share, test=90.0 * share) for share in (0.1, 1)),
    ]
    comparison = make_comparison(runs)
    text = write_table(comparison)
    assert "is 90.0, 38.0 points higher than without ELMo (52.0)" in text
    assert "are enough" not in text
    assert "the number of examples that ELMo saves is unknown" in text

from elmore.comparison.text_table import align, write_table
from tests.comparison.made_up import make_comparison, make_run, make_runs


def test_the_table_by_hand():
    runs = [
        *make_runs("without", [60.0], share=0.1),
        *make_runs("without", [80.0, 82.0]),
        *make_runs("input", [84.0, 86.5]),
    ]
    assert write_table(make_comparison(runs)) == (
        "names: f1 on test by training examples, mean ± std. dev. (seeds)\n"
        "                   100 (10 %)     1,000 (100 %)\n"
        "without ELMo        60.00 (1)  81.00 ± 1.41 (2)\n"
        "ELMo at the input           –  85.25 ± 1.77 (2)\n"
        "\n"
        "Gain over the network without ELMo (95 % interval over seeds)\n"
        "                   100 (10 %)           1,000 (100 %)\n"
        "ELMo at the input           –  +4.25 (+1.07 to +7.43)\n"
        "\n"
        "With ELMo at the input, f1 on test is 85.2 ± 1.8, 4.2 points higher than without ELMo "
        "(81.0 ± 1.4), over 2 seeds; 22 % fewer errors.\n"
    )


def test_without_a_baseline_there_is_no_gain():
    assert "Gain over" not in write_table(make_comparison([make_run("input")]))


def test_one_seed_has_no_interval():
    table = write_table(make_comparison([make_run(test=80.0), make_run("input", test=84.0)]))
    assert "ELMo at the input          +4.00\n" in table


def test_wide_characters_take_two_columns():
    assert align([["她", "1"], ["abc", "22"]]) == "她    1\nabc  22"

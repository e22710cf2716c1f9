from elmore.cli.tables import print_facts, print_table


def test_facts_are_aligned_and_never_wrapped(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    print_facts({"name": "[bold]elmo", "a longer name": "x" * 64})
    assert capsys.readouterr().out == f"name           [bold]elmo\na longer name  {'x' * 64}\n"


def test_numbers_are_aligned_on_the_right(capsys):
    print_table(("", "tokens"), [("train", "1,200"), ("[held out]", "7")], has_borders=False)
    assert capsys.readouterr().out == (
        "            tokens\ntrain        1,200\n[held out]       7\n"
    )


def test_a_table_can_have_borders(capsys):
    print_table(("token", "forward"), [("<S>", "-1.5")])
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0][0], lines[-1][0], lines[3]) == ("┏", "└", "│ <S>   │    -1.5 │")

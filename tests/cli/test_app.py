"""`elmore --help` lists every command in full."""

from elmore.cli.app import SECTIONS


def test_help_lists_every_command_with_its_whole_line(elmore_command) -> None:
    shown = elmore_command("--help").out
    assert "..." not in shown.replace("[ARGS]...", "")
    for name, (_, text) in [pair for part in SECTIONS.values() for pair in part.items()]:
        assert any(line.split() == [name, *text.split()] for line in shown.splitlines()), name


def test_every_listed_command_has_help(elmore_command) -> None:
    for part in SECTIONS.values():
        for name in part:
            result = elmore_command(name, "--help")
            assert result.status == 0
            assert f"elmore {name}" in result.out or f" {name} [" in result.out

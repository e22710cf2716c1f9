"""Tables on standard output."""

from collections.abc import Iterable, Mapping, Sequence


def print_facts(facts: Mapping[str, str]) -> None:
    """Print one fact per line; lines are not wrapped, so that a hash can be copied."""
    from rich.console import Console  # noqa: PLC0415  rich is slow to import
    from rich.text import Text  # noqa: PLC0415

    width = max(map(len, facts))
    console = Console()
    for name, value in facts.items():
        # As `Text`, so that brackets are not read as markup.
        console.print(Text(f"{name:<{width}}  {value}"), soft_wrap=True)


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, has_borders: bool = True
) -> None:
    """Print a table of numbers; the first column names the rows."""
    from rich.box import HEAVY_HEAD  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=HEAVY_HEAD if has_borders else None, pad_edge=has_borders)
    for number, heading in enumerate(headings):
        table.add_column(
            Text(heading), justify="right" if number else "left", no_wrap=not has_borders
        )
    for row in rows:
        table.add_row(*map(Text, row))  # a token may look like markup
    Console().print(table)

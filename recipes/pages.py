"""Write tables into pages, between <!-- NAME --> and <!-- end -->."""

import re
from collections.abc import Iterable, Mapping, Sequence


def write_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with numbers aligned to the right."""
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, marks, *rows))


def fill(page: str, tables: Mapping[str, str]) -> str:
    """Insert each table between its marks, if the page has them."""
    for name, table in tables.items():
        pattern = rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)"
        page = re.sub(
            pattern, lambda found, table=table: f"{found[1]}{table}\n{found[2]}", page, flags=re.S
        )
    return page

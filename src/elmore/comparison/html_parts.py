"""HTML building blocks and the style sheet of the report page.

Plain strings are escaped here; `Html` already is markup.
"""

import base64
from collections.abc import Iterable, Sequence
from html import escape

from elmore.comparison.drawing import Plot
from elmore.comparison.wording import clean


class Html(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


def text(words: str) -> Html:
    """Escape a plain string; markup is returned unchanged."""
    return words if isinstance(words, Html) else Html(escape(clean(words)))


def element(tag: str, *children: str, **attributes: str) -> Html:
    """Return an element; append `_` to an attribute that is a Python keyword.

    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(value)}"'
        for name, value in attributes.items()
    )
    return Html(f"<{tag}{named}>{join(children)}</{tag}>")


def join(children: Iterable[str], *, between: str = "") -> Html:
    """Concatenate pieces."""
    return Html(between.join(text(child) for child in children))


def section(title: str, *children: str) -> Html:
    """Return a section with a heading."""
    return element("section", element("h2", title), *children)


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Return a table that scrolls on a narrow page; the first cell of a row is its header."""
    head = element("tr", *(element("th", name, scope="col") for name in header))
    body = (
        element(
            "tr",
            element("th", first, scope="row"),
            *(element("td", cell) for cell in cells),
        )
        for first, *cells in rows
    )
    whole = element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", join(body, between="\n")),
    )
    # It scrolls, so it needs a name and keyboard focus.
    return element("div", whole, class_="scroll", role="region", tabindex="0", aria_label=caption)


def terms(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return a list of names and values."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", value)) for name, value in pairs),
    )


def figure(plot: Plot) -> Html:
    """Return a plot as an image, so that ids inside one SVG cannot clash with those of another."""
    data = base64.b64encode(plot.svg.encode("utf-8", errors="replace")).decode("ascii")
    # An image has no end tag.
    image = f'<img src="data:image/svg+xml;base64,{data}" alt="{text(plot.alt)}">'
    title = element("strong", plot.title)
    return element("figure", Html(image), element("figcaption", title, " ", plot.caption))


# For desktops, phones, dark mode and print.
STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1d1d1f; --soft: #5c5c63; --line: #d9d9de; --plate: #f5f5f7; --page: #fff;
}
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececef; --soft: #a9a9b2; --line: #3b3b42; --plate: #232328; --page: #17171a; }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem;
  font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  overflow-wrap: anywhere;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .75rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p { max-width: 46rem; }
.finding { font-size: 1.2rem; line-height: 1.45; margin: 0 0 1.5rem; }
.note { color: var(--soft); font-size: .9rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 14rem), 1fr));
  gap: .75rem 1.5rem; margin: 0; padding: 1rem; background: var(--plate); border-radius: .5rem; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; color: var(--soft); font-size: .9rem; padding-bottom: .4rem; }
th, td { padding: .35rem .9rem .35rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child { text-align: left; }
thead th { vertical-align: bottom; font-weight: 600; }
tbody th { font-weight: 400; white-space: normal; min-width: 8rem; }
small { color: var(--soft); font-size: .85rem; }
.plots { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); align-items: start; }
figure { margin: 0; }
figure img { display: block; width: 100%; height: auto; background: #fff; border-radius: .5rem;
  border: 1px solid var(--line); padding: .4rem; }
figcaption { font-size: .9rem; color: var(--soft); padding-top: .4rem; }
figcaption strong { color: var(--ink); }
summary { cursor: pointer; padding: .3rem 0; }
pre { background: var(--plate); padding: .75rem 1rem; border-radius: .5rem; overflow-x: auto;
  white-space: pre-wrap; }
@media print {
  :root { --ink: #000; --soft: #444; --line: #bbb; --plate: #fff; --page: #fff;
    color-scheme: light; }
  body { font-size: 10pt; max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""

"""HTML building blocks. Plain strings are escaped here; `Html` already is markup."""

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

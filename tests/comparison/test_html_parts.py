import base64

from elmore.comparison.drawing import Plot
from elmore.comparison.html_parts import Html, element, figure, join, table, text

EVIL = "<script>&\"'"
SAFE = "&lt;script&gt;&amp;&quot;&#x27;"


def test_words_are_escaped_once_wherever_they_come_in():
    assert text(EVIL) == SAFE
    assert text(text(EVIL)) == SAFE
    assert element("p", EVIL, Html("<b>"), title=EVIL) == f'<p title="{SAFE}">{SAFE}<b></p>'
    assert join([EVIL, "x"], between="\n") == f"{SAFE}\nx"


def test_a_table_has_heads_and_a_name():
    made = table(EVIL, ["", EVIL], [["first", EVIL]])
    assert made.count(SAFE) == 4  # the caption, the region's name, the head and the cell
    assert f'<th scope="col">{SAFE}</th>' in made
    assert '<th scope="row">first</th>' in made
    assert 'role="region" tabindex="0" aria-label=' in made


def test_a_plot_is_an_image_with_words():
    made = figure(Plot(title="T", caption=EVIL, alt=EVIL, svg="<svg>她</svg>"))
    assert f'alt="{SAFE}"' in made
    assert base64.b64encode("<svg>她</svg>".encode()).decode() in made
    assert f"<strong>T</strong> {SAFE}</figcaption>" in made

import re
from html.parser import HTMLParser

import pytest

from elmore.comparison.drawing import Plot
from elmore.comparison.page import flatten, make_page
from tests.comparison.made_up import make_comparison, make_run, make_runs

EVIL = "<script>alert('\"&')</script>"
PLOT = Plot(title="T", caption="C", alt="A", svg="<svg/>")
RUNS = [
    *make_runs("without", [70.0, 72.0], share=0.1),
    *make_runs("without", [80.0, 82.0]),
    *make_runs("input", [79.0, 80.0], share=0.1),
    *make_runs("input", [84.0, 86.5]),
]


class Reader(HTMLParser):
    """Collects the rows of tables and the text; refuses what is not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.rows, self.words, self.ids = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "iframe")
        for name, value in attributes:
            assert not name.startswith("on")
            if name in ("src", "href"):
                assert value.startswith("data:image/svg+xml;base64,")
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self):
        return "".join(self.words)


def read(comparison, **options):
    return Reader(
        make_page(comparison, **{"plots": [PLOT], "command": "elmore compare", **options})
    )


def test_the_page_has_the_finding_and_the_tables():
    page = read(make_comparison(RUNS))
    assert "f1 on test is 85.2 ± 1.8, 4.2 points higher than without ELMo (81.0 ± 1.4)" in page.text
    assert ["variant", "100 (10 %)", "1,000 (100 %)"] in page.rows
    assert ["without ELMo", "71.00 ± 1.41 (2)", "81.00 ± 1.41 (2)"] in page.rows
    # Seed by seed 4 and 4.5: 4.25 ± 12.7062 * 0.3536 / sqrt(2).
    gain = ["ELMo at the input", "1,000", "+4.25", "22 %", "4.25 ± 0.35", "+1.07 to +7.43",
            "significant gain"]  # fmt: skip
    assert gain in page.rows
    assert ["ELMo at the input", "input", "20 %", "50 %", "30 %", "1.50"] in page.rows
    assert ["variant", "examples", "seed", "dev f1", "test f1", "test recall", "best epoch", "time",
            "parameters"] in page.rows  # fmt: skip
    assert ["ELMo at the input", "1,000", "1", "87.50", "86.50", "81.50", "3", "1 min 30 s",
            "12,345"] in page.rows  # fmt: skip
    for words in ("Student’s t", "about 182 examples (18 %)", "task.hidden_dim = 100",
                  "elmore compare", "0123456789abcdef", "glove.50d.txt",
                  "1,000 train, 200 dev, 300 test"):  # fmt: skip
        assert words in page.text, words
    assert "erplexity" not in page.text


def test_perplexity_is_shown_if_the_bilm_was_fine_tuned():
    page = read(make_comparison(RUNS, perplexity={"before": 95.25, "after": 61.0}))
    assert "95.2 before, 61.0 after" in page.text


def test_names_of_users_are_only_text():
    runs = [make_run(), make_run(EVIL, scores={"dev": {"f1": 1.0, EVIL: 2.0}},
                                 layer_shares={EVIL: [0.5, 0.5]})]  # fmt: skip
    changes = dict.fromkeys(["task", "elmo", "elmo_fingerprint", "words"], EVIL)
    comparison = make_comparison(
        runs, num_examples={EVIL: 3}, perplexity={EVIL: 2.0}, settings={EVIL: {EVIL: EVIL}},
        **changes,
    )  # fmt: skip
    plot = Plot(title=EVIL, caption=EVIL, alt=EVIL, svg=EVIL)
    page = read(comparison, plots=[plot], command=EVIL, note=EVIL)
    assert page.text.count(EVIL) >= 12


def test_the_main_score_is_only_text():
    runs = [make_run(scores={"dev": {EVIL: 1.0}}), make_run("input", scores={"dev": {EVIL: 2.0}})]
    assert f"{EVIL} on dev" in read(make_comparison(runs, main_score=EVIL)).text


@pytest.mark.parametrize("variant", ["without", "input"])
def test_what_has_no_numbers_is_left_out(variant):
    page = read(make_comparison([make_run(variant)]), plots=[])
    headings = re.findall(r"Gain|Examples saved|Plots", page.text)
    assert headings == []


def test_a_run_that_was_not_made_is_a_dash():
    page = read(make_comparison([*RUNS, make_run("top")]))
    assert ["top layer only", "–", "80.00 (1)"] in page.rows


def test_the_page_reads_well_everywhere():
    page = make_page(make_comparison(RUNS), plots=[PLOT], command="x")
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    for words in ("width=device-width", "@media print", "prefers-color-scheme: dark", "<h1>",
                  "<main>", "default-src 'none'"):  # fmt: skip
        assert words in page, words
    assert page.count("<h1>") == 1
    assert "http://" not in page
    assert "https://" not in page


def test_settings_are_written_as_they_are_set():
    settings = {"a": {"b": {"c": 1}, "d": None}, "e": [1, "x"]}
    assert list(flatten(settings)) == [("a.b.c", "1"), ("a.d", "None"), ("e", "[1, 'x']")]

"""The parts of recipes/tasks that no command of elmore has."""

import gzip
import json

import pytest

from recipes import pages
from recipes.tasks import cut_data, write_page


def make_articles(*sizes):
    """Return articles with so many passages, of two questions each."""
    return [
        {"title": str(number), "paragraphs": [{"context": f"{number}.{k}", "qas": [1, 2]}] * size}
        for number, size in enumerate(sizes)
        for k in [0]
    ]


def test_splits_are_read_from_their_titles(tmp_path):
    text = "# Splits\n\nOf two.\n\n## dev\n\n  * GUM_a\n  * GUM_b\n\n## train\n  * GUM_c\n"
    assert cut_data.read_splits(text) == {"dev": ["GUM_a", "GUM_b"], "train": ["GUM_c"]}
    (tmp_path / "splits.md").write_text(text + "\n## test\n  * GUM_d\n")
    (tmp_path / "ontogum_conllu").mkdir()
    for name in "abcd":
        (tmp_path / "ontogum_conllu" / f"GUM_{name}.conllu").write_text(name)
    sizes = cut_data.cut_ontogum(tmp_path, tmp_path / "out")
    assert sizes == {"train": 1, "dev": 2, "test": 1}
    assert (tmp_path / "out" / "test" / "GUM_d.conllu").read_text() == "d"


def test_whole_articles_are_held_out_and_no_question_is_in_both():
    articles = make_articles(*[1] * 45)
    train, dev = cut_data.hold_out(articles)
    assert [article["title"] for article in dev] == ["0", "20", "40"]
    assert len(train) == 42
    assert not {article["title"] for article in train} & {article["title"] for article in dev}


def test_every_article_has_a_passage_before_one_has_two():
    chosen = cut_data.cut_questions(make_articles(3, 1, 2), most=7)
    assert [len(article["paragraphs"]) for article in chosen] == [2, 1, 1]
    assert [len(a["paragraphs"]) for a in cut_data.cut_questions(make_articles(3, 1, 2), 2)] == [1]


def test_questions_are_tested_on_what_is_public(tmp_path):
    for part, articles in (("train", make_articles(*[1] * 21)), ("dev", make_articles(4))):
        with gzip.open(tmp_path / f"{part}-v1.1-rebuilt.json.gz", "wt") as file:
            json.dump({"data": articles}, file)
    sizes = cut_data.cut_squad(tmp_path, tmp_path / "out")
    assert sizes == {"train": 38, "dev": 4, "test": 8}
    assert len(json.loads((tmp_path / "out" / "test.json").read_text())["data"]) == 1


def test_the_page_has_a_place_for_each_table_and_shows_what_reports_say():
    page = write_page.PAGE.read_text()
    tables = write_page.make_tables(write_page.read_reports())
    for name in tables:
        assert f"<!-- {name} -->\n" in page
    assert pages.fill(page, tables) == page


def test_reports_say_nothing_of_the_machine_and_parts_join_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(write_page, "FOLDER", tmp_path / "docs")
    seeds = {"ner": [1, 2], "ner_shares": [2, 3]}
    for name, numbers in seeds.items():
        (tmp_path / name).mkdir()
        runs = [{"variant": "input", "share": 1.0, "seed": number} for number in numbers]
        values = {
            "elmo_fingerprint": "e",
            "perplexity": {"before": 9.0, "after": 8.0} if name == "ner_shares" else None,
            "num_examples": {"train": 9, "dev": 2, "test": 2},
            "settings": {
                "kind": "entities",
                "words": {"file": "/home/ann/glove.txt"},
                "training": {"max_epochs": 3},
            },
            "runs": runs,
        }
        (tmp_path / name / "report.json").write_text(json.dumps(values))
    write_page.collect(tmp_path)
    found = json.loads((tmp_path / "docs" / "ner.json").read_text())
    assert found["settings"]["words"] == {"file": "glove.txt"}
    assert [run["seed"] for run in found["runs"]] == [1, 2, 3]
    assert found["perplexity"] == {"before": 9.0, "after": 8.0}
    values["settings"]["training"]["max_epochs"] = 4
    (tmp_path / "ner_shares" / "report.json").write_text(json.dumps(values))
    with pytest.raises(SystemExit, match=r"ner: reports differ in training\.max_epochs"):
        write_page.collect(tmp_path)


@pytest.mark.parametrize("name", ["ner", "tags"])
def test_the_paper_is_quoted_where_it_has_a_number(name):
    assert write_page.find_paper(write_page.TASKS[name], write_page.LAYERS) is None
    row = write_page.find_paper(write_page.TASKS["squad"], write_page.LAYERS)
    assert row == ["80.8", "84.7", "–", "85.2"]

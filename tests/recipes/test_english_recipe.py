"""The parts of recipes/english that no command of elmore has."""

import lzma

import pytest

from recipes import pages
from recipes.english import cut_sources, cut_text, measure, write_page


def test_documents_end_at_blank_lines_and_are_cut_at_sentences(tmp_path):
    (tmp_path / "x.txt").write_text("One two.\nThree.\n\n\nFour five six.\nSeven.\n")
    documents = measure.read_documents(tmp_path / "x.txt")
    assert documents == [
        [["One", "two", "."], ["Three", "."]],
        [["Four", "five", "six", "."], ["Seven", "."]],
    ]
    assert measure.cut_document(documents[1], max_tokens=4) == documents[1][:1]
    assert measure.cut_document(documents[1], max_tokens=5) == documents[1]


def test_all_mixes_in_quarters():
    mixes = measure.list_mixes(2)
    assert mixes == [[0.0, 1.0], [0.25, 0.75], [0.5, 0.5], [0.75, 0.25], [1.0, 0.0]]
    assert len(measure.list_mixes(3)) == 15


def test_every_so_many_th_document_is_held_out_whole(tmp_path):
    with lzma.open(tmp_path / "x.xz", "wt") as file:
        file.write("a\nb\n\nc\n\nd\n\n\ne\n")
    documents = cut_text.read_documents(tmp_path / "x.xz")
    assert cut_text.split(documents, 2, "x", tmp_path) == [1, 3]
    assert (tmp_path / "x.txt").read_text() == "a\nb\n\nd\n\n"
    assert (tmp_path / "heldout_x.txt").read_text() == "c\n\ne\n\n"


def test_sources_are_written_apart_with_one_in_so_many_held_out(tmp_path):
    writer = cut_sources.Writer(tmp_path, "x", every=2)
    for document, is_trained_on in (("a\n", True), ("b\n", False), ("c\n", False), ("d\n", True)):
        writer.write(document, is_trained_on=is_trained_on)
    writer.close()
    assert (tmp_path / "x.txt").read_text() == "a\n\n"
    assert (tmp_path / "heldout_x.txt").read_text() == "b\n\nd\n\n"


def test_modern_sources_follow_their_index(tmp_path):
    for index, name, source in (
        ("INDEX.tsv", "modern_sentences.txt.xz", "mdn+content"),
        ("INDEX2.tsv", "modern2_sentences.txt.xz", "openstax/physics"),
    ):
        (tmp_path / index).write_text(f"{source}\tCC BY\t2\t3\t9\n")
        with lzma.open(tmp_path / name, "wt") as file:
            file.write("a\nb\n\nc\n")
    assert list(cut_sources.read_modern(tmp_path)) == [
        ("modern_docs", "a\nb\n"),
        ("modern_docs", "c\n"),
        ("modern_textbooks", "a\nb\n"),
        ("modern_textbooks", "c\n"),
    ]
    (tmp_path / "INDEX2.tsv").write_text("openstax/physics\tCC BY\t2\t4\t9\n")
    with pytest.raises(SystemExit, match="use files that belong together"):
        list(cut_sources.read_modern(tmp_path))
    with pytest.raises(SystemExit, match="add it"):
        cut_sources.find_file("unknown/source")


def test_tables_are_put_between_their_marks_and_nowhere_else():
    page = "a\n<!-- x -->\nold\n<!-- end -->\nb\n<!-- y -->\nkept\n<!-- end -->\n"
    filled = pages.fill(page, {"x": r"| new \1 |"})
    assert filled == "a\n<!-- x -->\n| new \\1 |\n<!-- end -->\nb\n<!-- y -->\nkept\n<!-- end -->\n"
    assert pages.fill(filled, {"x": r"| new \1 |"}) == filled


@pytest.mark.parametrize("name", ["card.md"])
def test_places_for_tables_have_tables(name):
    text = (write_page.CARD.parent / name).read_text()
    for place in ("facts", "perplexity", "stored"):
        assert f"<!-- {place} -->\n<!-- end -->" in text

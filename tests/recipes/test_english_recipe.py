"""The parts of recipes/english that no command of elmore has."""

import json
import lzma
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from elmore.lm import muon
from elmore.lm.settings import load_settings
from elmore.probes.nearest_sense import MOST_FREQUENT, SenseUse
from elmore.probes.sense_data import SenseSentence, SenseTarget
from recipes import pages
from recipes.english import (
    compare_models,
    compare_recipes,
    cut_sources,
    cut_text,
    fit_similarity,
    measure,
    systems,
    vocabulary,
    write_page,
)
from tests.lm.slow_language_model import make_language_model


def test_documents_end_at_blank_lines_and_are_cut_at_sentences(tmp_path):
    (tmp_path / "x.txt").write_text("One two.\nThree.\n\n\nFour five six.\nSeven.\n")
    documents = measure.read_documents(tmp_path / "x.txt")
    assert documents == [
        [["One", "two", "."], ["Three", "."]],
        [["Four", "five", "six", "."], ["Seven", "."]],
    ]
    assert measure.cut_document(documents[1], max_tokens=4) == documents[1][:1]
    assert measure.cut_document(documents[1], max_tokens=5) == documents[1]


def test_texts_of_all_editions_come_first(tmp_path):
    for name in (
        "heldout_abstracts",
        "heldout_books",
        "heldout_modern_law",
        "heldout_articles",
        "x",
    ):
        (tmp_path / f"{name}.txt").write_text("")
    expected = ["books", "articles", "abstracts", "modern_law"]
    assert measure.list_heldout(tmp_path) == expected


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


# Recipes at equal time.


@pytest.mark.parametrize("name", compare_recipes.RECIPES)
def test_every_recipe_can_be_read_and_falls_at_the_end(name):
    settings = compare_recipes.read_recipe(name, num_steps=100)
    assert (settings.training.max_steps, settings.optimizer.decay_steps) == (100, 30)
    assert settings.optimizer.final_share == 0.02


def test_the_second_edition_is_the_base_recipe_with_the_compared_mix():
    path = compare_recipes.SETTINGS.parent / "second" / "settings.toml"
    settings = load_settings(path)
    base = [f"{name}={value}" for name, value in compare_recipes.BASE.items()]
    changed = load_settings(path, base)
    assert changed == settings
    weights = {name: n for name, n in compare_recipes.WEIGHTS.items() if n > 1}
    assert settings.training.weights == weights


def test_the_third_edition_continues_the_second_with_the_same_recipe():
    folder = compare_recipes.SETTINGS.parent
    second, third = (
        load_settings(folder / name / "settings.toml", needs_model=False)
        for name in ("second", "third")
    )
    lines = (folder.parents[1] / "docs/results/english/metrics_second.jsonl").read_text()
    last_step = json.loads(lines.splitlines()[-1])["step"]
    assert third.training == replace(second.training, skip_steps=last_step)
    assert (third.optimizer, third.softmax) == (second.optimizer, second.softmax)


def test_gates_are_orthogonalized_one_by_one_with_the_usual_size_of_an_update():
    matrix = torch.randn(4 * 40, 30, generator=torch.Generator().manual_seed(0))
    with compare_recipes.gates_one_by_one(cell_dim=40):
        found = muon.orthogonalize(matrix)
        other = muon.orthogonalize(matrix[:50])
    assert torch.equal(other, muon.orthogonalize(matrix[:50]))
    for gate, own in zip(found.chunk(4), matrix.chunk(4), strict=True):
        left, _, right = torch.linalg.svd(own, full_matrices=False)
        exact = left @ right * math.sqrt(40 / 160)
        assert (gate - exact).norm() < 0.15 * exact.norm()
    # Muon multiplies by the root of the larger side: the numbers are then about 1 in size.
    assert (found * math.sqrt(160)).square().mean().sqrt() == pytest.approx(1, abs=0.1)


def test_averaged_weights_follow_the_last_steps():
    average: dict[str, torch.Tensor] = {}
    for number in (0.0, 1.0, 1.0):
        compare_recipes.follow(average, {"x": torch.tensor([number])})
    assert average["x"].item() == pytest.approx(1 - 0.9**2)


# Comparisons with other models.


def test_pieces_are_averaged_to_tokens():
    pieces = np.arange(10, dtype=np.float32).reshape(1, 5, 2)
    found = systems.average_pieces(pieces, [None, 0, 0, 2, None], num_tokens=3)
    assert found.tolist() == [[[3, 4], [0, 0], [6, 7]]]
    assert list(systems.batched(iter("abcde"), 2)) == [["a", "b"], ["c", "d"], ["e"]]


def test_pairs_and_cosines():
    first, second = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[4.0, 3.0], [1.0, 0.0]])
    assert compare_models.find_cosines(first, second).tolist() == [0.96, 0.0]
    assert compare_models.join_pair(first, second)[0].tolist() == [3, 4, 4, 3, 1, 1, 12, 12]


def test_similar_sentences_are_read_with_their_quotes(tmp_path):
    path = tmp_path / "sts-dev.csv"
    path.write_text('main\tMSRvid\t2012\t0\t4.75\tA "man".\tA man.\nmain\tx\ty\t1\t0\ta\tb\tz\n')
    assert compare_models.read_similar(path) == (['A "man".', "a"], ["A man.", "b"], [4.75, 0.0])


def test_lines_are_taken_at_equal_distances(tmp_path):
    (tmp_path / "x.txt").write_text("a\n\nb\nc\nd\n\ne\nf\n")
    assert fit_similarity.sample_lines(tmp_path / "x.txt", num_lines=3) == ["a", "c", "e"]
    assert fit_similarity.sample_lines(tmp_path / "x.txt", num_lines=99) == list("abcdef")


def test_the_share_of_unknown_tokens():
    counts = Counter({"a": 6, "b": 3, "c": 1})
    assert vocabulary.find_unknown_share(counts, {"a", "b", "x"}) == 0.1


def make_senses(*keys: str) -> list[SenseSentence]:
    """A sentence for each sense; its token is the sense."""
    return [
        SenseSentence(
            tokens=(key,),
            targets=(
                SenseTarget(
                    start=0, end=1, lemma="bank", part_of_speech="NOUN", keys=(key,), name=""
                ),
            ),
        )
        for key in keys
    ]


def test_senses_are_scored_with_and_without_a_prior():
    def find(sentences):
        for sentence in sentences:
            near = {"a": [1.0, 0.9], "b": [0.9, 1.0]}[sentence.tokens[0]]
            # Vectors mislead in the test sets: a looks like b.
            vector = near if isinstance(sentences, tuple) else near[::-1]
            yield SenseUse(target=sentence.targets[0], vectors=np.array([vector], np.float32))

    tests = {name: make_senses("a", "a", "b") for name in measure.TEST_SETS}
    found = measure.score_tests(
        tuple(make_senses(*"aaaaaaaab")),
        tests,
        views={"layer 0": [1.0]},
        first_senses={},
        find=find,
    )
    assert found.f1["layer 0"]["all"] == 0
    assert found.f1[MOST_FREQUENT]["senseval2"] == pytest.approx(200 / 3)
    own = found.prior["layer 0"]
    assert (own["prior"], own["plain, all"]) == (0.005, 0)
    assert own["with prior, all"] == own["with prior, without semeval2007"]
    assert own["with prior, all"] == pytest.approx(200 / 3)
    assert own["with prior, macro-F1"] == pytest.approx(100 * (2 * 10 / 25 + 0) / 2)
    assert found.prior[MOST_FREQUENT]["prior"] is None


def test_the_comparison_has_a_column_for_each_model_and_a_row_for_what_was_measured():
    table = write_page.show_models(
        {
            "minilm": {"speed": {"cpu_seconds_per_1000_tokens": 1.23456}},
            "first": {"tags": {"test": 92.04}},
        }
    )
    assert table.splitlines() == [
        "|  | elmore | all-MiniLM-L6 |",
        "| --- | ---: | ---: |",
        "| parts of speech (EWT), accuracy | 92.0 |  |",
        "| CPU seconds per 1,000 tokens |  | 1.235 |",
    ]


def test_claims_are_confirmed_denied_or_left_open():
    tags = {"layer 0": 0.80, "layer 1": 0.92, "layer 2": 0.90, "learned mix": 0.902}
    senses = {"most frequent sense": 64.6, "layer 0": 50.0, "layer 1": 58.0, "layer 2": 60.0}
    senses["mix chosen on semeval2007"] = 61.0
    table = write_page.show_claims(
        {
            "tags": [{"name": name, "test": {"overall": x}} for name, x in tags.items()],
            "senses": {"f1": {name: {"all": x} for name, x in senses.items()}},
        }
    )
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert [row[-1] for row in rows] == ["yes", "yes", "yes", "no difference", "yes", "no"]
    assert rows[0][2:4] == ["layer 1: 92.0", "layer 2: 90.0"]


def test_the_facts_name_both_formats_if_they_differ(tmp_path):
    model = make_language_model()
    for store_softmax, expected in ((None, "stored as f16 |"), ("int8", "the LM head as int8 |")):
        model.save(tmp_path / "model", run={"tokens": 1}, store="f16", store_softmax=store_softmax)
        assert write_page.show_facts(tmp_path / "model").endswith(expected)


def test_editions_are_told_apart():
    table = write_page.show_models(
        {name: {"tags": {"test": 90}} for name in ("first", "second", "new")}
    )
    assert table.splitlines()[0] == (
        "|  | elmore | elmore, second edition | elmore, first edition |"
    )


def test_recipes_are_sorted_by_their_end():
    lines = [{"tokens": 1_000_000, "perplexity": 400.4, "averaged_perplexity": 450.0}]
    good, bad = (
        {
            "name": name,
            "num_steps": 170,
            "curve": [*lines, {**lines[0], "perplexity": end, "averaged_perplexity": end + 1}],
        }
        for name, end in (("good", 300), ("bad", 310))
    )
    table = write_page.show_recipes([bad, good]).splitlines()
    assert table[2] == "| good | 170 | 1.00M | 400 | 450 | 300 | 301 |"
    assert table[3].startswith("| bad")


def test_shares_of_unknown_tokens_are_shown_by_size():
    found = {"modern_law": {"tokens": 1234, "unknown": {"50000": 0.0264, "80000": 0.02}}}
    assert write_page.show_vocabulary(found).splitlines()[2] == (
        "| modern, law | 1,234 | 2.6 % | 2.0 % |"
    )

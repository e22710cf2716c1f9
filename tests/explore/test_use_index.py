import json
import shutil
from dataclasses import asdict

import numpy as np
import pytest

from elmore.embed.embedder import Embedder
from elmore.errors import DataError, ElmoreError
from elmore.explore import nearest_rows
from elmore.explore.nearest_rows import find_highest
from elmore.explore.use_index import open_index
from tests import tiny
from tests.explore import indexes


@pytest.fixture(scope="module")
def embedder():
    return indexes.make_embedder()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, embedder):
    folder = tmp_path_factory.mktemp("texts")
    indexes.write_texts(folder)
    (folder / "long.txt").write_text(indexes.make_large_text())
    indexes.make_index(folder, embedder, "book.txt", "tagged.conllu", "long.txt")
    return folder


@pytest.fixture(scope="module")
def index(folder):
    return open_index(folder / "index")


def all_vectors(index, layer):
    return index.vectors(range(index.num_tokens), layer).astype(np.float64)


def plain_cosines(index, layer, query):
    """Cosines one by one, in double precision."""
    vectors = all_vectors(index, layer)
    return vectors @ query / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(query))


def test_uses_of_a_word_are_those_of_the_text(index, folder):
    words = [index.use(number).word for number in range(index.num_tokens)]
    folded = [n for n, word in enumerate(words) if word.casefold() == "bank"]
    exact = [n for n, word in enumerate(words) if word == "Bank"]
    found = index.uses("BANK")
    assert [use.number for use in found.uses] == folded
    assert (found.total, found.is_sample) == (len(folded), False)
    assert found.spellings == {"bank": len(folded) - len(exact), "Bank": len(exact)}
    assert [use.number for use in index.uses("Bank", match_case=True).uses] == exact
    assert index.uses("BANK", match_case=True).total == 0
    assert index.uses("nowhere").uses == []


def test_uses_can_be_filtered_by_source_and_tag(index, folder):
    book, tagged = str(folder / "book.txt"), str(folder / "tagged.conllu")
    assert {use.source for use in index.uses("bank", source=book).uses} == {book}
    assert index.uses("bank", source=[book, tagged]).total == 5
    assert index.uses("bank", source=tagged).total == 0
    assert [use.tag for use in index.uses("bear", tag="NOUN").uses] == ["NOUN"]
    assert index.uses("bear", tag=["NOUN", "VERB"]).total == 2
    assert index.tags == ["NOUN", "VERB", "DET"]


def test_a_sample_is_said_to_be_one_and_is_always_the_same(index):
    whole = [use.number for use in index.uses("bank", limit=None).uses]
    found = index.uses("bank", limit=5)
    assert (found.total, found.is_sample) == (len(whole), True)
    assert [use.number for use in found.uses] == [whole[n * len(whole) // 5] for n in range(5)]
    assert index.uses("bank", limit=5) == found
    assert not index.uses("bank", limit=len(whole)).is_sample


def test_words_are_completed_most_frequent_first(index):
    found = index.words("b")
    assert [entry.word for entry in found] == ["bank", "bear", "Bears"]
    assert found[0].count == index.uses("bank").total
    assert len(index.words(top=3)) == 3
    assert index.words("xyz") == []


def test_stop_words_and_punctuation_are_left_out(index):
    found = [entry.word for entry in index.words(top=100)]
    kept = [entry.word for entry in index.words(top=100, skip_stop_words=True)]
    left_out = [word for word in found if word not in kept]
    assert {"the", "."} <= set(left_out)
    assert kept[:2] == ["bank", "river"]
    assert [entry.word for entry in index.words(top=1, skip_stop_words=True)] == ["bank"]


@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize("block_rows", [3, 2048])
def test_nearest_uses_are_those_of_plain_cosines(index, monkeypatch, layer, block_rows):
    monkeypatch.setattr(nearest_rows, "BLOCK_ROWS", block_rows)
    use = index.uses("river").uses[0]
    cosines = plain_cosines(index, layer, all_vectors(index, layer)[use.number])
    cosines[use.number] = -np.inf
    found = index.nearest(use, layer, top=7)
    wanted = sorted(cosines, reverse=True)[:7]
    np.testing.assert_allclose([near.similarity for near in found], wanted, atol=1e-5)
    np.testing.assert_allclose([cosines[near.use.number] for near in found], wanted, atol=1e-5)


def test_nearest_uses_can_be_of_one_word_or_source(index, folder):
    use = index.uses("bear").uses[0]
    found = index.nearest(use, 1, top=1000, word="bank")
    assert {near.use.word for near in found} == {"bank", "Bank"}
    assert len(found) == index.uses("bank").total
    cosines = plain_cosines(index, 1, all_vectors(index, 1)[use.number])
    wanted = [cosines[near.use.number] for near in found]
    np.testing.assert_allclose([near.similarity for near in found], wanted, atol=1e-5)
    assert sorted(wanted, reverse=True) == pytest.approx(wanted, abs=1e-5)
    tagged = str(folder / "tagged.conllu")
    found = index.nearest(use, 1, top=1000, source=tagged, tag="NOUN")
    assert {near.use.word for near in found} == {"Bears", "bear"}


def test_a_typed_use_finds_itself_in_the_index(index, embedder):
    sentence = ["He", "sat", "on", "the", "Bank", "."]
    for token in (4, "Bank", "bank"):
        typed = index.typed_use(embedder, sentence, token)
        best = index.nearest(typed, 2, top=1)[0]
        assert best.use.tokens == sentence
        assert best.use.position == 4
        assert best.similarity == pytest.approx(1, abs=1e-3)


def test_two_uses_are_compared_in_each_layer(index, embedder):
    one, two = index.uses("bank").uses[:2]
    typed = index.typed_use(embedder, two.tokens, two.position)
    found = index.compare(one, two)
    assert list(found) == [0, 1, 2]
    for layer, cosine in found.items():
        wanted = plain_cosines(index, layer, all_vectors(index, layer)[one.number])[two.number]
        assert cosine == pytest.approx(wanted, abs=1e-5)
    assert index.compare(one, typed) == pytest.approx(found, abs=1e-3)
    assert index.compare(one.number, two.number) == found


def test_layer_0_has_one_vector_per_spelling(index, folder):
    assert (folder / "index" / "layer0.f16").stat().st_size == index.num_words * 10 * 2
    vectors = index.vectors(index.uses("bank", match_case=True).uses, 0)
    assert len(np.unique(vectors, axis=0)) == 1


def test_results_can_be_written_as_json(index):
    uses = index.uses("bank")
    for result in (uses, index.nearest(0, 1)[0], index.map(uses.uses, 1), *index.sources):
        assert json.loads(json.dumps(asdict(result)))
    assert json.loads(json.dumps(asdict(index.groups(uses.uses, 1))))


def test_highest_values_are_those_of_sorting():
    generator = np.random.default_rng(0)
    for top in (0, 1, 5, 30, 40):
        values = generator.integers(0, 6, size=30).astype(np.float32)  # many are equal
        wanted = sorted(range(30), key=lambda n: (-values[n], n))[:top]
        assert find_highest(values, top).tolist() == wanted


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda index: index.uses(3), "word is 3; give a string"),
        (lambda index: index.uses("bank", limit=0), "limit is 0"),
        (lambda index: index.uses("bank", source="x"), "the index has no source 'x'; choose one"),
        (lambda index: index.uses("bank", tag="ADV"), "no tag 'ADV'; choose one of: NOUN, VERB"),
        (lambda index: index.use(-1), "a use is -1, but the uses"),
        (lambda index: index.use(10**9), "take them from `uses`"),
        (lambda index: index.use("bank"), "a use is 'bank'"),
        (lambda index: index.vectors([0], 3), "layer is 3, but .* has the layers 0, 1, 2"),
        (lambda index: index.nearest(0, "top"), "layer is 'top'"),
        (lambda index: index.nearest(0, 1, top=-1), "top is -1"),
        (lambda index: index.map([0], 1, method="umap"), "method is 'umap'; choose one of: pca"),
        (lambda index: index.groups([0, 1], 1, num_groups=3), "num_groups is 3"),
    ],
)
def test_a_mistake_is_one_sentence(index, call, complaint):
    with pytest.raises(ElmoreError, match=complaint):
        call(index)


def test_typed_uses_need_the_same_model_and_the_token(index, embedder):
    with pytest.raises(DataError, match=r"was built with the model .* give the index's model"):
        index.typed_use(Embedder(tiny.model(seed=3)), "The bank", "bank")
    with pytest.raises(DataError, match="does not contain the word 'river'"):
        index.typed_use(embedder, "The bank", "river")
    with pytest.raises(DataError, match="token is 2, but the sentence 'The bank' has 2 tokens"):
        index.typed_use(embedder, "The bank", 2)


def test_what_is_not_an_index_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"there is no folder .*; build an index with elmore index"):
        open_index(tmp_path / "missing")
    with pytest.raises(DataError, match="is not an index; build one"):
        open_index(tmp_path)
    (tmp_path / "index.json").write_text('{"kind": "elmore corpus", "format": 1}')
    with pytest.raises(DataError, match="its kind is 'elmore corpus'"):
        open_index(tmp_path)
    (tmp_path / "index.json").write_text('{"kind": "elmore index", "format": 2}')
    with pytest.raises(DataError, match="has format 2, this version of elmore reads format 1"):
        open_index(tmp_path)


def test_a_missing_or_shorter_file_is_noticed_on_opening(folder, tmp_path):
    for path in sorted((folder / "index").iterdir()):
        shutil.copytree(folder / "index", tmp_path / path.name)
        damaged = tmp_path / path.name / path.name
        damaged.write_bytes(path.read_bytes()[:-2])
        with pytest.raises(DataError, match=f"{path.name}.*; (copy the index again|restore it)"):
            open_index(tmp_path / path.name)
        damaged.unlink()
        with pytest.raises(DataError, match=r"is missing; copy the index again|is not an index"):
            open_index(tmp_path / path.name)


@pytest.mark.slow
def test_changed_bytes_are_an_error_or_harmless_and_found_by_check(folder, tmp_path):
    generator = np.random.default_rng(0)
    names = [path.name for path in sorted((folder / "index").iterdir())]
    for trial in range(60):
        copied = tmp_path / str(trial)
        shutil.copytree(folder / "index", copied)
        path = copied / names[trial % len(names)]
        content = bytearray(path.read_bytes())
        position = int(generator.integers(len(content)))
        content[position] ^= int(generator.integers(1, 256))
        path.write_bytes(content)
        try:
            index = open_index(copied)
            found = index.uses("bank").uses or [index.use(0)]
            index.nearest(found[0], 1)
            index.map(found, 1)
            index.groups(found, 2)
        except ElmoreError:
            continue
        with pytest.raises(DataError, match=r"is damaged \(its checksum differs\)"):
            index.check()


def test_an_index_can_be_moved_and_is_not_changed_by_reading(folder, tmp_path, index):
    before = indexes.read_all(folder / "index")
    copied = shutil.copytree(folder / "index", tmp_path / "copy")
    moved = open_index(copied)
    assert moved.uses("bank") == index.uses("bank")
    moved.check()
    assert indexes.read_all(folder / "index") == before


@pytest.mark.parametrize(
    ("name", "dtype", "position", "value", "complaint"),
    [
        ("tokens.i32", "<i4", 3, 41, "it has words that do not exist"),
        ("tokens.i32", "<i4", 3, -1, "it has words that do not exist"),
        ("tags.u16", "<u2", 0, 4, "it has tags that do not exist"),
        ("sentences.i64", "<i8", 0, 1, "its sentences are not in order"),
        ("sentences.i64", "<i8", 8, 2, "its sentences are not in order"),
        ("sentences.i64", "<i8", -4, 306, "its sentences are not in order"),
        ("sentences.i64", "<i8", 1, 0, "it has an invalid line or document"),
        ("sentences.i64", "<i8", 2, -1, "it has an invalid line or document"),
        ("sentences.i64", "<i8", 3, 3, "it has sources that do not exist"),
        ("occurrences-305.i64", "<i8", 7, 305, "it has tokens that do not exist"),
        ("word_starts-305.i64", "<i8", -1, 304, "its words are not in order"),
        ("word_starts-305.i64", "<i8", 1, -5, "its words are not in order"),
    ],
)
def test_numbers_out_of_bounds_are_noticed_on_opening(
    folder, tmp_path, index, name, dtype, position, value, complaint
):
    assert (index.num_tokens, index.num_words, len(index.sources)) == (305, 41, 3)
    copied = shutil.copytree(folder / "index", tmp_path / "copy")
    numbers = np.fromfile(copied / name, dtype)
    numbers[position] = value
    numbers.tofile(copied / name)
    with pytest.raises(DataError, match=rf"{name} is damaged \({complaint}\); copy the index"):
        open_index(copied)

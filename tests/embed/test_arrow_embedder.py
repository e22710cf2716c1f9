"""One callable for every kind of table, with the vectors of the embedder."""

import pickle

import numpy as np
import pandas
import pyarrow
import pytest

import elmore
from elmore.embed import arrow_embedder
from elmore.errors import ElmoreError
from tests import tiny
from tests.tiny import TRAINED_MODEL

TEXTS = ["The bank of the river.", "", "He left.", "The old man sat by the river."]


@pytest.fixture(scope="module")
def embedder():
    return elmore.load(TRAINED_MODEL)


@pytest.fixture(autouse=True)
def _no_shared_models(monkeypatch):
    monkeypatch.setattr(arrow_embedder, "_loaded", type(arrow_embedder._loaded)())


def make_tables(texts):
    columns = {"id": list(range(len(texts))), "text": texts}
    table = pyarrow.table(columns)
    return {
        "table": table,
        "record batch": table.to_batches()[0],
        "frame": pandas.DataFrame(columns),
        "lists": columns,
        "arrays": {name: np.array(values, dtype=object) for name, values in columns.items()},
    }


def get(table, name):
    column = table[name]
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


@pytest.mark.parametrize("kind", ["table", "record batch", "frame", "lists", "arrays"])
@pytest.mark.parametrize("layers", ["average", "all"])
@pytest.mark.parametrize("fixed_size", [True, False])
def test_pooled_vectors_have_the_embedders_bits(embedder, kind, layers, fixed_size):
    batch = make_tables(TEXTS)[kind]
    embed = elmore.ArrowEmbedder(TRAINED_MODEL, pool="mean", layers=layers, fixed_size=fixed_size)
    found = embed(batch)
    assert type(found) is type(batch)
    assert get(found, "id") == [0, 1, 2, 3]
    wanted = embedder.sentence_vectors(TEXTS, layers=layers)
    assert np.array(get(found, "vector"), dtype=np.float32).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("kind", ["table", "record batch", "frame", "lists"])
def test_token_vectors_have_the_embedders_bits(embedder, kind):
    batch = make_tables(TEXTS)[kind]
    found = elmore.ArrowEmbedder(embedder, pool=None, layers="top")(batch)
    assert [list(tokens) for tokens in get(found, "tokens")] == embedder.tokenize(TEXTS)
    wanted = embedder.embed(TEXTS, layers="top")
    for vectors, other in zip(get(found, "vector"), wanted, strict=True):
        assert np.array(list(vectors), np.float32).reshape(-1, 48).tobytes() == other.tobytes()


def test_columns_may_hold_tokens(embedder):
    sentences = [["The", "bank"], [], ["a b"]]
    embed = elmore.ArrowEmbedder(embedder, column="words", tokenized=True, output="elmo")
    for table in (pyarrow.table({"words": sentences}), {"words": sentences}):
        found = np.array(get(embed(table), "elmo"), np.float32)
        assert found.tobytes() == embedder.sentence_vectors(sentences).tobytes()


@pytest.mark.parametrize("pool", ["mean", None])
@pytest.mark.parametrize("fixed_size", [True, False])
def test_missing_texts_have_missing_vectors(embedder, pool, fixed_size):
    texts = ["He left.", None, "The bank."]
    embed = elmore.ArrowEmbedder(embedder, pool=pool, fixed_size=fixed_size)
    for kind in ("table", "record batch", "frame", "lists"):
        found = get(embed(make_tables(texts)[kind]), "vector")
        assert [vector is None for vector in found] == [False, True, False], kind
        whole = get(embed(make_tables(["He left.", "The bank."])[kind]), "vector")
        assert np.array(found[2]).tobytes() == np.array(whole[1]).tobytes()


def test_lists_of_arrow_are_plain_if_asked(embedder):
    table = pyarrow.table({"text": TEXTS})
    fixed = elmore.ArrowEmbedder(embedder)(table).schema.field("vector").type
    plain = elmore.ArrowEmbedder(embedder, fixed_size=False)(table).schema.field("vector").type
    assert fixed == pyarrow.list_(pyarrow.float32(), 48)
    assert plain == pyarrow.list_(pyarrow.float32())


def test_an_empty_batch_keeps_its_columns(embedder):
    for pool in ("mean", None):
        table = elmore.ArrowEmbedder(embedder, pool=pool)(
            pyarrow.table({"text": pyarrow.array([], pyarrow.string())})
        )
        assert table.num_rows == 0
        assert "vector" in table.schema.names


def test_one_row_of_datasets(embedder):
    found = embedder.to_features("text")({"text": "He left."})
    assert found["vector"].tobytes() == embedder.sentence_vectors("He left.").tobytes()


def test_a_pickle_is_small_and_always_the_same(embedder):
    embed = elmore.ArrowEmbedder(TRAINED_MODEL, threads=1)
    data = pickle.dumps(embed)
    assert len(data) < 2000
    embed({"text": TEXTS})
    assert pickle.dumps(embed) == data
    copy = pickle.loads(data)
    assert pickle.dumps(copy) == data
    assert pickle.dumps(elmore.ArrowEmbedder(TRAINED_MODEL, threads=1)) == data
    assert pickle.dumps(elmore.ArrowEmbedder(TRAINED_MODEL, threads=1, pool="max")) != data
    given = pickle.dumps(embedder.to_features("text"))
    assert len(given) < 2000
    embedder.embed(TEXTS)
    assert pickle.dumps(embedder.to_features("text")) == given


def test_copies_in_a_process_share_the_model():
    data = pickle.dumps(elmore.ArrowEmbedder(TRAINED_MODEL))
    assert pickle.loads(data).embedder is pickle.loads(data).embedder


def test_copies_with_other_settings_do_not_share_a_model():
    exact, rough = (elmore.load(TRAINED_MODEL, precision=name) for name in ("f32", "int8"))
    sent = [pickle.loads(pickle.dumps(elmore.ArrowEmbedder(given))) for given in (exact, rough)]
    assert [copied.embedder.precision for copied in sent] == ["f32", "int8"]


def test_another_model_at_the_same_path_is_refused(tmp_path):
    tiny.model(scale=0.4).save_pretrained(tmp_path / "model")
    data = pickle.dumps(elmore.ArrowEmbedder(tmp_path / "model"))
    tiny.model(scale=0.3).save_pretrained(tmp_path / "model")
    arrow_embedder._loaded.clear()  # as in another process
    with pytest.raises(ElmoreError, match="not the one that this ArrowEmbedder was made with"):
        pickle.loads(data)({"text": TEXTS})
    other = pickle.dumps(elmore.ArrowEmbedder(tmp_path / "model"))
    assert other != data


@pytest.mark.parametrize(
    ("batch", "options", "complaint"),
    [
        ({"body": TEXTS}, {}, "has no column 'text'; it has body"),
        ({"text": [3]}, {}, "has 3, but texts were expected"),
        ({"text": [["a"]]}, {}, "say tokenized=True"),
        ({"text": ["a"]}, {"tokenized": True}, "leave out tokenized"),
        (TEXTS, {}, "got a list where a table was expected"),
        ({}, {"pool": "sum"}, "pool is 'sum'"),
        ({}, {"pool": "similarity"}, "is not available for tables"),
        ({}, {"threads": 0}, "threads"),
        ({}, {"state": "stream"}, "rows of a table are independent"),
        ({}, {"colum": "text"}, "colum"),
    ],
)
def test_mistakes_are_one_sentence(batch, options, complaint):
    with pytest.raises(ElmoreError, match=complaint):
        elmore.ArrowEmbedder(TRAINED_MODEL, **options)(batch)


def test_a_loaded_model_keeps_its_settings(embedder):
    with pytest.raises(ElmoreError, match="the model is loaded already"):
        elmore.ArrowEmbedder(embedder, precision="bf16")
    with pytest.raises(ElmoreError, match="state policy of this model is stream"):
        elmore.ArrowEmbedder(elmore.load(TRAINED_MODEL, state="stream"))

"""Uses, maps, groups and similar uses are those of the index; bad queries are one sentence."""

from dataclasses import asdict

import pytest

import elmore
from elmore.serve.admission import LONG, SHORT
from elmore.serve.settings import Limits
from tests.explore.indexes import make_index, write_texts
from tests.serve.services import get, load_tiny, make_service, post, use


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uses")
    write_texts(folder)
    return make_index(folder, load_tiny(), "book.txt", "news.txt", "tagged.conllu")


@pytest.fixture
def service(index):
    return make_service(index=index)


def test_words_are_completed(service):
    answer = get("/words", service=service, params={"prefix": "b", "top": 2}).json()
    assert answer == {"words": [{"word": "bank", "count": 7}, {"word": "bear", "count": 2}]}


def test_stop_words_are_left_out(service):
    params = {"top": 2, "skip_stop_words": True}
    answer = get("/words", service=service, params=params).json()
    assert [entry["word"] for entry in answer["words"]] == ["bank", "bear"]


def test_a_refusal_does_not_name_folders_of_the_server():
    async def talk(client):
        return [
            await client.get("/map", params={"word": "river", "layer": 1}),
            await client.get("/map", params={"word": "bank", "layer": 9}),
            await client.post("/compare", json={"use": 0, "other": 10**9}),
        ]

    for refused in use(make_service(), talk):
        assert refused.status_code == 422
        assert "index" in refused.json()["error"]
        assert "/" not in refused.json()["error"]


def test_only_words_with_vectors_are_offered():
    found = get("/words", params={"top": 50}).json()["words"]
    example = elmore.open_index()
    assert {entry["word"].casefold() for entry in found} == set(example.indexed_words)


def test_uses_are_those_of_the_index_and_are_filtered(service, index):
    async def talk(client):
        return [
            (await client.get("/uses", params=params)).json()
            for params in (
                {"word": "bank"},
                {"word": "Bank", "match_case": True},
                {"word": "bank", "source": str(index.sources[1].name), "limit": 1},
                {"word": "bear", "tag": ["VERB"]},
                {"word": "unheard"},
            )
        ]

    every, capital, news, verbs, none = use(service, talk)
    assert every == asdict(index.uses("bank"))
    assert [found["word"] for found in capital["uses"]] == ["Bank", "Bank"]
    assert (news["total"], news["is_sample"], len(news["uses"])) == (2, True, 1)
    assert [found["tag"] for found in verbs["uses"]] == ["VERB"]
    assert (none["total"], none["uses"]) == (0, [])


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_maps_are_those_of_the_index(index, method):
    params = {"word": "the", "layer": 1, "method": method, "center_by_spelling": True}
    word = "bank"
    if method == "tsne":
        pytest.importorskip("openTSNE", reason="openTSNE is not installed")
        index = elmore.open_index()  # t-SNE needs some uses
        word = "match"
    answer = get("/map", service=make_service(index=index), params={**params, "word": word}).json()
    uses = index.uses(word).uses
    drawn = index.map(uses, 1, method=method, center_by_spelling=True)
    assert answer["numbers"] == [found.number for found in uses]
    assert answer["points"] == [list(point) for point in drawn.points]
    assert answer["method"] == method


def test_groups_are_those_of_the_index(service, index):
    answer = get("/groups", service=service, params={"word": "bank", "layer": 2, "num_groups": 3})
    found = index.groups(index.uses("bank").uses, 2, num_groups=3)
    assert answer.json()["labels"] == found.labels
    assert answer.json()["groups"] == [asdict(group) for group in found.groups]


def test_a_map_is_computed_once(service, monkeypatch):
    calls = []
    original = service.index.index.map
    monkeypatch.setattr(
        service.index.index, "map", lambda *a, **k: calls.append(1) or original(*a, **k)
    )

    async def talk(client):
        params = {"word": "bank", "layer": 1}
        first = await client.get("/map", params=params)
        again = await client.get("/map", params=params)
        other = await client.get("/map", params={**params, "match_case": True})
        return first.json(), again.json(), other.json()

    first, again, other = use(service, talk)
    assert first == again != other
    assert len(calls) == 2


def test_the_nearest_uses_of_an_indexed_and_of_a_typed_use(service, index):
    typed = {"sentence": "He sat on the bank .", "token": "bank"}

    async def talk(client):
        bodies = [
            {"use": 1, "layer": 1, "top": 3, "word": "bank"},
            {"use": typed, "layer": 2, "top": 2, "source": [index.sources[0].name]},
        ]
        return [(await client.post("/nearest", json=body)).json() for body in bodies]

    indexed, typed_found = use(service, talk)
    expected = index.nearest(1, 1, top=3, word="bank")
    assert indexed["uses"] == [asdict(near) for near in expected]
    assert indexed["query"] == {
        "tokens": index.use(1).tokens,
        "position": index.use(1).position,
        "number": 1,
    }
    query = index.typed_use(load_tiny(), "He sat on the bank .", "bank")
    expected = index.nearest(query, 2, top=2, source=index.sources[0].name)
    assert typed_found["uses"] == [asdict(near) for near in expected]
    assert typed_found["query"] == {
        "tokens": ["He", "sat", "on", "the", "bank", "."],
        "position": 4,
        "number": None,
    }


def test_two_uses_are_compared_in_every_layer(service, index):
    other = {"sentence": ["A", "bank"], "token": 1}
    answer = post("/compare", service=service, json={"use": 1, "other": other}).json()
    typed = index.typed_use(load_tiny(), ["A", "bank"], 1)
    assert dict(zip(answer["layers"], answer["cosines"], strict=True)) == index.compare(1, typed)
    assert answer["cosines"][0] == pytest.approx(1, abs=1e-3)  # one spelling, in f16
    assert answer["other"] == {"tokens": ["A", "bank"], "position": 1, "number": None}


def test_a_typed_use_needs_the_model_of_the_index():
    body = {"use": {"sentence": "A bank .", "token": "bank"}, "layer": 1}
    answer = post("/nearest", json=body)  # the example's model is not the tiny one
    assert answer.status_code == 404
    assert "which this server does not have" in answer.json()["error"]
    assert answer.json()["field"] == "use"


@pytest.mark.parametrize(
    ("path", "params", "status", "complaint"),
    [
        ("/uses", {}, 422, "word is wrong: field required"),
        ("/uses", {"word": ""}, 422, "word is wrong"),
        ("/uses", {"word": "a", "limit": "many"}, 422, "limit is wrong"),
        ("/uses", {"word": "a", "limit": 10**9}, 422, "limit is wrong"),
        ("/uses", {"word": "a", "other": "b"}, 422, "other is wrong"),
        ("/uses", {"word": "bank", "source": "x.txt"}, 422, "no source 'x.txt'"),
        ("/map", {"word": "bank", "layer": 7}, 422, "layer is 7"),
        ("/map", {"word": "bank", "layer": 1, "method": "umap"}, 422, "method is wrong"),
        ("/groups", {"word": "bank"}, 422, "layer is wrong"),
        ("/groups", {"word": "bank", "layer": 1, "num_groups": 9}, 422, "num_groups"),
    ],
)
def test_a_bad_query_is_refused_in_one_sentence(service, path, params, status, complaint):
    answer = get(path, service=service, params=params)
    assert answer.status_code == status
    assert complaint in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "complaint"),
    [
        ("/nearest", {"layer": 1}, "use is missing"),
        ("/nearest", {"use": "bank", "layer": 1}, "use must be the number of a use"),
        ("/nearest", {"use": 10**9, "layer": 1}, "a use is 1000000000"),
        ("/nearest", {"use": {"sentence": "a", "token": "b"}, "layer": 1}, "does not contain"),
        ("/nearest", {"use": {"sentence": "a", "token": 4}, "layer": 1}, "has 1 tokens"),
        ("/compare", {"use": 1}, "other is missing"),
        ("/compare", {"use": 1, "other": -1}, "a use is -1"),
    ],
)
def test_a_bad_request_is_refused_in_one_sentence(service, path, body, complaint):
    answer = post(path, service=service, json=body)
    assert answer.status_code == 422
    assert complaint in answer.json()["error"]


def test_a_typed_sentence_counts_its_tokens(index):
    service = make_service(index=index, limits=Limits(max_request_tokens=20))
    body = {"use": {"sentence": "a " * 30, "token": 1}, "layer": 1}
    assert post("/nearest", service=service, json=body).status_code == 413


def test_what_takes_long_does_not_hold_up_others(service):
    lanes = []
    for name, lane in service.lanes.items():
        submit = lane.submit
        lane.submit = lambda work, name=name, submit=submit: lanes.append(name) or submit(work)

    async def talk(client):
        await client.get("/uses", params={"word": "bank"})
        await client.get("/map", params={"word": "bank", "layer": 1})
        await client.post("/nearest", json={"use": 1, "layer": 1})

    use(service, talk)
    assert lanes == [SHORT, LONG, LONG]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/nearest", b'{"layer": 1, "use": ' + b"[" * 900 + b"]" * 900 + b"}"),
        ("/nearest", b'{"layer": 1, "use": ' + b"9" * 100_000 + b"}"),
        ("/nearest", b'{"layer": 1e400, "use": 1}'),
        ("/nearest", b'{"layer": 1, "use": {"sentence": "\xff", "token": 0}}'),
        ("/nearest", b'{"layer": 1, "use": {"sentence": "a", "token": 9223372036854775807}}'),
        ("/compare", b'{"use": true, "other": NaN}'),
        ("/similarity", b'{"input": {"a": 1}}'),
        ("/similarity", b"[" * 100_000),
    ],
)
def test_hostile_bodies_are_refused_in_one_sentence(service, path, body):
    headers = {"content-type": "application/json"}
    answer = post(path, service=service, content=body, headers=headers)
    assert answer.status_code == 422
    assert 10 < len(answer.json()["error"]) < 400
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    "query", ["word=%ff%fe", "word=%00", "word=" + "a" * 900, "word=" + "a" * 1500, "word=a&word=b"]
)
def test_strange_words_are_answered_or_refused(service, query):
    answer = get(f"/uses?{query}", service=service)
    assert answer.status_code in (200, 422)

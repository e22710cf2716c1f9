"""Vectors over HTTP are those of the embedder, bit for bit, whatever shares their batch."""

import asyncio
import base64
import json

import numpy as np
import pytest

import elmore
from elmore.serve.encoding import normalize
from elmore.serve.lanes import Lane
from elmore.serve.settings import Limits
from tests.serve.services import load_tiny, make_service, post, use
from tests.tiny import TRAINED_MODEL

TEXTS = ["the bank of the river .", "It rains", "a", "the the the bank"]


def as_floats(listed):
    return np.array(listed, dtype=np.float32)


def test_openai_floats_are_sentence_vectors_of_length_one():
    answer = post("/v1/embeddings", json={"input": TEXTS, "model": "tiny"}).json()
    expected = normalize(load_tiny().sentence_vectors(TEXTS))
    found = as_floats([item["embedding"] for item in answer["data"]])
    assert found.tobytes() == expected.tobytes()
    assert [item["index"] for item in answer["data"]] == [0, 1, 2, 3]
    assert (answer["object"], answer["model"]) == ("list", "tiny")
    num_tokens = sum(map(len, load_tiny().tokenize(TEXTS)))
    assert answer["usage"] == {"prompt_tokens": num_tokens, "total_tokens": num_tokens}


def test_openai_base64_and_floats_are_the_same_numbers():
    body = {"input": TEXTS[0], "encoding_format": "base64", "normalize": False}
    (item,) = post("/v1/embeddings", json=body).json()["data"]
    found = np.frombuffer(base64.b64decode(item["embedding"]), "<f4")
    assert found.tobytes() == load_tiny().sentence_vectors(TEXTS[0]).tobytes()


def test_lists_of_tokens_are_not_split():
    tokens = [["don't", "split", "this."], ["a"]]
    found = as_floats(post("/embed_all", json={"inputs": tokens[:1]}).json()[0])
    assert found.tobytes() == load_tiny().embed(tokens)[0].tobytes()
    data = post("/v1/embeddings", json={"input": tokens, "normalize": False}).json()["data"]
    expected = load_tiny().sentence_vectors(tokens)
    assert as_floats([item["embedding"] for item in data]).tobytes() == expected.tobytes()


def test_embed_gives_one_vector_per_input():
    found = as_floats(post("/embed", json={"inputs": TEXTS, "normalize": False}).json())
    assert found.tobytes() == load_tiny().sentence_vectors(TEXTS).tobytes()
    unit = as_floats(post("/embed", json={"inputs": TEXTS[0]}).json())
    assert np.linalg.norm(unit, axis=1) == pytest.approx([1])


def test_embed_all_gives_one_vector_per_token_and_empty_texts_none():
    answer = post("/embed_all", json={"inputs": [*TEXTS, ""]}).json()
    for text, found in zip(TEXTS, answer, strict=False):
        assert as_floats(found).tobytes() == load_tiny().embed(text).tobytes()
    assert answer[-1] == []


@pytest.mark.parametrize("layers", ["all", "average", "sum", "top", 1, [2, 0]])
@pytest.mark.parametrize("form", ["json", "base64", "raw"])
def test_layers_in_every_form(layers, form):
    body = {"inputs": ["the  bank", ["a", "b", "c"]], "layers": layers, "format": form}
    response = post("/layers", json=body)
    sentences = read_layers(response, form)
    expected = load_tiny().embed([["the", "bank"], ["a", "b", "c"]], layers=layers)
    assert [vectors.tobytes() for _, vectors in sentences] == [
        vectors.tobytes() for vectors in expected
    ]
    (first, _), (second, _) = sentences
    assert first["tokens"] == ["the", "bank"]
    assert first["offsets"] == [[0, 3], [5, 9]]
    assert first["shape"] == list(expected[0].shape)
    assert second["offsets"] is None


def read_layers(response, form):
    """Return facts and vectors of each sentence."""
    assert response.status_code == 200, response.text
    if form == "raw":
        line, _, numbers = response.content.partition(b"\n")
        assert (len(line) + 1) % 8 == 0
        found, start = [], 0
        for facts in json.loads(line)["sentences"]:
            size = int(np.prod(facts["shape"]))
            array = np.frombuffer(numbers, "<f4", count=size, offset=start)
            found.append((facts, array.reshape(facts["shape"])))
            start += 4 * size
        assert start == len(numbers)
        return found
    return [
        (
            facts,
            as_floats(facts["vectors"])
            if form == "json"
            else np.frombuffer(base64.b64decode(facts["vectors"]), "<f4"),
        )
        for facts in response.json()["sentences"]
    ]


def test_a_mix_is_the_weighted_sum_of_the_layers():
    weights = [0.5, 0.25, 0.25]
    body = {"inputs": TEXTS[0], "mix": weights, "format": "json"}
    ((_, found),) = read_layers(post("/layers", json=body), "json")
    mixed = load_tiny().embed(TEXTS[0], layers=elmore.ScalarMix.from_weights(weights))
    assert found.tobytes() == mixed.tobytes()
    layers = load_tiny().embed(TEXTS[0], layers="all")
    assert found == pytest.approx(np.tensordot(weights, layers, axes=1), abs=1e-5)


def test_requests_for_different_mixes_do_not_share_a_batch():
    mixes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]

    async def talk(client):
        return await asyncio.gather(
            *(client.post("/layers", json={"inputs": TEXTS[0], "mix": mix}) for mix in mixes)
        )

    layers = load_tiny().embed(TEXTS[0], layers="all")
    for answer, layer in zip(use(make_service(), talk), layers, strict=True):
        ((_, found),) = read_layers(answer, "json")
        assert found == pytest.approx(layer, abs=1e-6)


def test_half_precision_is_the_rounded_vector():
    body = {"inputs": "the bank", "layers": "top", "format": "base64", "dtype": "f16"}
    (facts,) = post("/layers", json=body).json()["sentences"]
    found = np.frombuffer(base64.b64decode(facts["vectors"]), "<f2").reshape(facts["shape"])
    assert np.array_equal(found, load_tiny().embed("the bank", layers="top").astype(np.float16))


@pytest.mark.parametrize("batch_tokens", [1, 12, 4096])
def test_results_do_not_depend_on_what_shares_the_batch(batch_tokens, monkeypatch):
    reports = []
    finish = Lane._finish

    def note(lane, batch, *others):
        reports.append(len(batch))
        finish(lane, batch, *others)

    monkeypatch.setattr(Lane, "_finish", note)
    texts = [" ".join(["the bank of a river"] * (1 + index % 4)) for index in range(24)]
    service = make_service(limits=Limits(batch_tokens=batch_tokens))

    async def talk(client):
        return await asyncio.gather(
            *(
                client.post("/layers", json={"inputs": text, "layers": ["top", "all"][index % 2]})
                for index, text in enumerate(texts)
            )
        )

    answers = use(service, talk)
    for index, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        ((_, found),) = read_layers(answer, "json")
        expected = load_tiny().embed(text, layers=["top", "all"][index % 2])
        assert found.tobytes() == expected.tobytes()
    assert max(reports) == {1: 1, 12: 1, 4096: 12}[batch_tokens] or batch_tokens == 12
    assert (max(reports) > 4) == (batch_tokens == 4096)


@pytest.mark.parametrize(
    ("path", "body", "field", "complaint"),
    [
        ("/v1/embeddings", {"input": "a", "dimensions": 3}, "dimensions", "leave dimensions out"),
        ("/embed", {"inputs": "a", "dimensions": 3}, "dimensions", "have 48 numbers"),
        ("/embed", {"inputs": "a", "prompt_name": "query"}, "prompt_name", "no prompts"),
        ("/embed", {"inputs": ["a", " "]}, "inputs", r"inputs\.1 has no tokens"),
        ("/v1/embeddings", {"input": []}, "input", "empty list"),
        ("/v1/embeddings", {"input": [1, 2]}, "input", "tokens are words here, not numbers"),
        ("/v1/embeddings", {"input": "a", "encoding_format": "f64"}, "encoding_format", "'float'"),
        ("/layers", {"inputs": "a", "layers": 3}, "layers", "from 0 to 2"),
        ("/layers", {"inputs": "a", "layers": [0, 0]}, "layers", "different layer numbers"),
        ("/layers", {"inputs": "a", "mix": [1, 2]}, "mix", "2 weights, but the model has 3"),
        ("/layers", {"inputs": "a", "dtype": "f64"}, "dtype", "'f32'"),
        ("/layers", {"layers": "all"}, "inputs", "inputs is missing"),
        ("/layers", {"inputs": "a", "layer": 1}, "layer", "layer is wrong: extra"),
    ],
)
def test_a_wrong_field_is_named(path, body, field, complaint):
    response = post(path, json=body)
    assert response.status_code == 422
    error = response.json()
    error = error["error"] if path.startswith("/v1") else error
    assert error.get("param", error.get("field")) == field
    with pytest.raises(elmore.ElmoreError, match=complaint):
        raise elmore.ElmoreError(error.get("message", error.get("error")))


def test_the_full_width_is_accepted_as_dimensions():
    assert post("/v1/embeddings", json={"input": "a", "dimensions": 48}).status_code == 200


class TestTooLong:
    LIMITS = Limits(max_request_tokens=12, long_tokens=8, max_answer_bytes=5000)

    def make(self):
        service = make_service(limits=self.LIMITS)
        embedder = elmore.load(TRAINED_MODEL, max_sentence_tokens=6)
        object.__setattr__(service.models[0], "embedder", embedder)
        return service

    def test_a_long_sentence_is_refused_and_never_shortened_silently(self):
        response = post("/embed", json={"inputs": "a " * 7}, service=self.make())
        assert response.status_code == 413
        assert "has 7 tokens, more than the server's --max-sentence-tokens 6" in response.text

    @pytest.mark.parametrize(
        ("direction", "kept"), [("Right", "a b c d e f"), ("Left", "b c d e f g")]
    )
    def test_truncate_shortens_and_says_so(self, direction, kept):
        body = {"inputs": "a b c d e f g", "truncate": True, "truncation_direction": direction}
        response = post("/embed", json={**body, "normalize": False}, service=self.make())
        assert response.headers["x-truncated-inputs"] == "1"
        expected = load_tiny().sentence_vectors([kept])
        assert as_floats(response.json()).tobytes() == expected.tobytes()
        whole = post("/embed", json={**body, "inputs": "a"}, service=self.make())
        assert "x-truncated-inputs" not in whole.headers

    def test_single_and_batch_inputs_have_the_same_limit(self):
        for inputs in (["a b c d", "e f g h i j"], ["a"] * 5, [""] * 7):
            response = post("/embed_all", json={"inputs": inputs}, service=self.make())
            assert response.status_code == 413, inputs
            assert "--max-request-tokens 12" in response.json()["error"]

    def test_an_answer_that_is_too_large_is_refused_before_it_is_computed(self):
        response = post("/layers", json={"inputs": "a b c d"}, service=self.make())
        assert response.status_code == 413
        assert "--max-answer-bytes 5000" in response.json()["error"]
        raw = {"inputs": "a b c d", "format": "raw"}
        assert post("/layers", json=raw, service=self.make()).status_code == 200

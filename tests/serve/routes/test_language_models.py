"""Tokens, scores and gaps are those of the library; a model without an LM head says so."""

import pytest

from elmore import Embedder
from elmore.serve.admission import LONG
from elmore.serve.served_models import ServedModel
from elmore.serve.settings import Limits
from tests import tiny
from tests.serve.services import load_tiny, make_service, post

TEXT = "the bank of  the river ."


def test_tokens_have_offsets():
    answer = post("/tokenize", json={"inputs": ["Don't go.", "我 😀 a"]}).json()
    for text, found in zip(["Don't go.", "我 😀 a"], answer["sentences"], strict=True):
        assert found["tokens"] == load_tiny().tokenize(text)
        assert [text[start:end] for start, end in found["offsets"]] == found["tokens"]


def test_scores_are_those_of_the_model_with_one_number_per_token():
    (found,) = post("/score", json={"inputs": TEXT}).json()["sentences"]
    score = load_tiny().score(TEXT)
    assert found["tokens"] == score.tokens
    assert len(found["offsets"]) == len(found["forward_lm"]) == len(found["backward_lm"])
    assert [*found["forward_lm"], found["end"]] == score.forward_lm
    assert [found["begin"], *found["backward_lm"]] == score.backward_lm
    assert found["is_known"] == score.is_known
    assert found["forward_total"] == score.forward_total


def test_gaps_are_filled_as_by_the_model():
    answer = post("/fill", json={"input": "the ___ of the river .", "top": 3}).json()
    expected = load_tiny().fill("the ___ of the river .", top=3)
    assert [filling["word"] for filling in answer["fillings"]] == [each.word for each in expected]
    assert answer["fillings"][0]["probability"] == expected[0].probability
    tokens = ["the", "___", "of", "the", "river", "."]
    assert post("/fill", json={"input": tokens, "top": 3}).json() == answer


@pytest.mark.parametrize(
    ("path", "body", "status", "complaint"),
    [
        ("/fill", {"input": "no gap"}, 422, "input has 0 gaps"),
        ("/fill", {"input": "___ ___"}, 422, "input has 2 gaps"),
        ("/fill", {"input": "___", "top": 0}, 422, "top is wrong"),
        ("/fill", {"input": "___", "top": 10**30}, 422, "top is wrong"),
        ("/fill", {"input": "a ___ " + "b " * 500}, 413, "--max-request-tokens"),
        ("/score", {"inputs": ["a", ""]}, 422, "without tokens"),
        ("/tokenize", {"inputs": [["a"]]}, 422, "inputs must be"),
    ],
)
def test_wrong_requests_are_explained(path, body, status, complaint):
    response = post(path, json=body)
    assert response.status_code == status
    assert complaint in response.json()["error"]


@pytest.mark.parametrize(
    ("path", "body"), [("/score", {"inputs": "a"}), ("/fill", {"input": "a ___"})]
)
def test_a_model_without_an_lm_head_says_why(path, body):
    service = make_service(models=[ServedModel("published", Embedder(tiny.model()))])
    response = post(path, json=body, service=service)
    assert response.status_code == 404
    assert "the model 'published' has no LM head" in response.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "is_long"),
    [
        ("/score", {"inputs": "a"}, True),
        ("/fill", {"input": "a ___"}, True),
        ("/embed", {"inputs": "a " * 10}, True),
        ("/embed", {"inputs": "a"}, False),
        ("/tokenize", {"inputs": "a " * 10}, False),
    ],
)
def test_slow_requests_use_the_lane_for_long_ones(path, body, is_long, monkeypatch):
    service = make_service(limits=Limits(long_tokens=10))
    used = []
    for name, lane in service.lanes.items():
        submit = lane.submit
        monkeypatch.setattr(
            lane, "submit", lambda work, n=name, s=submit: used.append(n) or s(work)
        )
    assert post(path, json=body, service=service).status_code == 200
    assert (used == [LONG]) == is_long

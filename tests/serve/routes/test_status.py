"""What the server says about itself."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from elmore import Embedder
from elmore.serve.served_models import ServedModel
from elmore.serve.service import Phase
from tests import tiny
from tests.serve.services import get, load_tiny, make_service, post, use


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.DRAINING])
def test_nothing_but_health_is_answered_before_and_after(phase):
    async def talk(client):
        return {
            path: await client.request(method, path, json={"inputs": "a"})
            for method, path in [
                ("GET", "/health"),
                ("GET", "/ready"),
                ("GET", "/info"),
                ("GET", "/v1/models"),
                ("POST", "/embed"),
            ]
        }

    service = make_service()
    service.phase = phase
    answers = use(service, talk)
    health = answers.pop("/health")
    assert (health.status_code, health.json()) == (200, {"status": str(phase)})
    for answer in answers.values():
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"


def test_a_ready_server_lists_its_models():
    service = make_service(
        models=[ServedModel("a", load_tiny()), ServedModel("b", Embedder(tiny.model()))]
    )

    async def talk(client):
        assert (await client.get("/ready")).json() == {"status": "ready"}
        return (await client.get("/info")).json(), (await client.get("/v1/models")).json()

    info, models = use(service, talk)
    assert info["model_id"] == "a"
    assert [(model["name"], model["has_lm_head"]) for model in info["models"]] == [
        ("a", True),
        ("b", False),
    ]
    assert info["models"][1]["vector_dim"] == 10
    assert info["limits"]["max_request_tokens"] == 20_000
    assert [model["id"] for model in models["data"]] == ["a", "b"]


def test_a_request_chooses_a_model_by_name():
    service = make_service(
        models=[ServedModel("a", load_tiny()), ServedModel("b", Embedder(tiny.model()))]
    )

    async def talk(client):
        return [
            await client.post("/embed", json={"inputs": "x", "model": name})
            for name in (None, "a", "b", "c")
        ]

    answers = use(service, talk)
    assert [len(answer.json()[0]) for answer in answers[:3]] == [48, 48, 10]
    assert answers[3].status_code == 404
    assert "this server has: a, b" in answers[3].json()["error"]


def test_metrics_are_prometheus_text():
    async def talk(client):
        await client.post("/embed", json={"inputs": "a b"})
        await client.post("/embed", json={})
        await client.get("/secret-text")
        return await client.get("/metrics")

    text = use(make_service(), talk).text
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["elmore_requests_total", "/embed", "200"] == 1
    assert found["elmore_requests_total", "/embed", "422"] == 1
    assert found["elmore_requests_total", "404", "other"] == 1
    assert found["elmore_tokens_total", "short"] == 4
    assert found["elmore_queued_tokens", "short"] == 0
    assert "secret" not in text


def test_the_documentation_loads_nothing_and_names_every_route():
    async def talk(client):
        return (await client.get("/docs")).text, (await client.get("/openapi.json")).json()

    page, schema = use(make_service(), talk)
    assert not re.search(r"<script|<link|<img|@import|url\(|src=", page)
    assert "default: null" not in page
    for path in schema["paths"]:
        assert f" {path}</code>" in page
    assert {"/v1/embeddings", "/embed", "/layers", "/score", "/metrics"} <= set(schema["paths"])
    body = schema["paths"]["/layers"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["required"] == ["inputs"]


def test_a_page_can_be_served_next_to_the_routes(tmp_path):
    (tmp_path / "index.html").write_text("<p>the page</p>")

    async def talk(client):
        return await client.get("/"), await client.get("/health"), await client.get("/no.js")

    page, health, missing = use(make_service(), talk, static_folder=tmp_path)
    assert "the page" in page.text
    assert health.json() == {"status": "ready"}
    assert missing.status_code == 404


def test_an_unknown_route_and_method_are_one_sentence():
    assert get("/nothing").json()["error"] == "there is no such route; see /docs"
    assert get("/embed").status_code == 405
    assert post("/v1/nothing", json={}).json()["error"]["message"].startswith("there is no such")

"""The key, admission and the log come before everything else."""

import hmac
import logging

import pytest

from elmore.serve.app import make_app
from elmore.serve.settings import Limits
from tests.serve.services import make_service, post, use

KEY = {"authorization": "Bearer secret"}


def test_a_key_is_needed_for_everything_but_health():
    async def talk(client):
        for path in ("/health", "/ready"):
            assert (await client.get(path)).status_code == 200
        for path in ("/info", "/metrics", "/v1/models", "/docs", "/openapi.json", "/nothing"):
            refused = await client.get(path)
            assert refused.status_code == 401, path
            assert refused.headers["www-authenticate"] == "Bearer"
        assert (await client.get("/info", headers=KEY)).status_code == 200
        return [
            (await client.post("/embed", json={"inputs": "a"}, headers=headers)).status_code
            for headers in (
                {},
                {"authorization": "secret"},
                {"authorization": "Bearer secre"},
                {"authorization": "Bearer secret "},
                {"authorization": "Bearer sécret".encode()},
                KEY,
            )
        ]

    statuses = use(make_service(api_key="secret"), talk)
    assert statuses == [401] * 5 + [200]


def test_keys_are_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(given, expected):
        compared.append((given, expected))
        return given == expected

    monkeypatch.setattr(hmac, "compare_digest", compare)
    post("/embed", json={"inputs": "a"}, headers=KEY, service=make_service(api_key="secret"))
    assert compared == [(b"Bearer secret", b"Bearer secret")]


def test_the_key_is_not_shown():
    assert "secret" not in repr(make_service(api_key="secret").settings)


def test_an_overloaded_server_refuses_before_the_body_is_read():
    service = make_service(limits=Limits(max_queue_tokens=10))
    service.admission.enter(0).move(10)
    read = []

    async def parts():
        read.append(True)
        yield b'{"inputs": "a"}'

    async def talk(client):
        headers = {"content-type": "application/json", "content-length": "15"}
        return await client.post("/embed", content=parts(), headers=headers)

    response = use(service, talk)
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) >= 1
    assert read == []


def test_the_log_has_routes_and_no_texts(caplog):
    async def talk(client):
        await client.post("/embed?q=private", json={"inputs": "private"})
        await client.get("/private/path")

    with caplog.at_level(logging.INFO, logger="elmore.serve.access"):
        use(make_service(), talk)
    lines = [record.getMessage() for record in caplog.records]
    lines = [line for line in lines if "127.0.0.1 " in line]
    assert [line.split()[1:4] for line in lines] == [
        ["POST", "/embed", "200"],
        ["GET", "other", "404"],
    ]
    assert "private" not in "".join(lines)


def test_the_log_can_be_turned_off(caplog):
    with caplog.at_level(logging.INFO, logger="elmore.serve.access"):
        post("/embed", json={"inputs": "a"}, service=make_service(has_access_log=False))
    assert not [record for record in caplog.records if record.name == "elmore.serve.access"]


def test_other_origins_are_refused_unless_they_are_named():
    preflight = {"origin": "https://a.org", "access-control-request-method": "POST"}

    async def talk(client):
        answer = await client.options("/embed", headers=preflight)
        plain = await client.post(
            "/embed", json={"inputs": "a"}, headers={"origin": "https://a.org"}
        )
        return answer.headers.get("access-control-allow-origin"), plain.headers.get(
            "access-control-allow-origin"
        )

    assert use(make_service(), talk) == (None, None)
    named = make_service(cors_origins=("https://a.org",))
    assert use(named, talk) == ("https://a.org", "https://a.org")
    other = make_service(cors_origins=("https://b.org",))
    assert use(other, talk) == (None, None)


def test_a_bug_is_a_sentence_without_details(monkeypatch):
    service = make_service()

    def fail(_name):
        raise ZeroDivisionError("private")

    monkeypatch.setattr(service, "find_model", fail)
    response = post("/embed", json={"inputs": "a"}, service=service)
    assert response.status_code == 500
    assert response.json()["error"] == "the server failed; its log says why"


def test_a_refusal_has_the_form_of_its_route():
    service = make_service(api_key="secret")

    async def talk(client):
        return (await client.get("/v1/models")).json(), (await client.get("/info")).json()

    openai, tei = use(service, talk)
    assert openai["error"]["type"] == "authentication_error"
    assert tei["error_type"] == "Unauthorized"


def test_nothing_is_reported_to_others_even_if_the_environment_asks_for_it(monkeypatch):
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    app = make_app(make_service())
    settings = getattr(app, "_telemetry", None)
    if settings is None:
        pytest.skip("this version of FastAPI has no telemetry")
    switches = ("tracing", "metrics", "logs", "operation_spans", "auto_configure")
    assert [settings[name] for name in switches] == [False] * len(switches)
    assert not app._native_telemetry.enabled()

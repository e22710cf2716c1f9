"""Any body is answered: with vectors if it is valid, otherwise with one sentence and a 4xx."""

import asyncio
import time

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.serve.body import parse_body
from elmore.serve.errors import RequestError
from elmore.serve.schemas import EmbedRequest, LayersRequest
from elmore.serve.settings import Limits
from tests.serve.services import make_service, post, use

JSON = {"content-type": "application/json"}

BOMBS = {
    "nothing": b"",
    "half an object": b'{"inputs": "a"',
    "a list": b"[1]",
    "null": b"null",
    "a number": b"1",
    "nested lists": b"[" * 100_000,
    "nested lists in a field": b'{"inputs":' + b"[" * 900 + b"]" * 900 + b"}",
    "nested objects": b'{"a":' * 100_000,
    "NaN": b'{"inputs": NaN}',
    "infinity": b'{"inputs": "a", "dimensions": Infinity}',
    "a huge number": b'{"inputs": "a", "dimensions": ' + b"9" * 100_000 + b"}",
    "a huge power": b'{"inputs": "a", "dimensions": 1e400}',
    "a wrong whole number": b'{"inputs": "a", "dimensions": 1e25}',
    "invalid UTF-8": b'{"inputs": "\xff\xfe"}',
    "half a surrogate pair": b'{"inputs": "\\ud800"}',
    "a NUL outside": b'\x00{"inputs": "a"}',
    "UTF-16": '{"inputs": "a"}'.encode("utf-16"),
    "a hundred thousand wrong items": b'{"inputs": [' + b"1," * 100_000 + b"1]}",
    "a wrong item at the end": b'{"inputs": [' + b'"a",' * 1000 + b"1]}",
    "lists of empty lists": b'{"inputs": [' + b"[]," * 100_000 + b"[]]}",
    "a boolean": b'{"inputs": true}',
    "two values": b'{"inputs": "a"}{"inputs": "b"}',
}


@pytest.mark.parametrize("path", ["/embed", "/v1/embeddings", "/layers"])
def test_bodies_that_are_not_requests_are_refused_in_one_sentence(path):
    async def talk(client):
        for name, body in BOMBS.items():
            began = time.process_time()
            response = await client.post(path, content=body, headers=JSON)
            assert response.status_code in (413, 422), (name, response.text)
            error = response.json()["error"]
            message = error["message"] if path.startswith("/v1") else error
            assert 10 < len(message) < 400, name
            assert "\n" not in message, name
            assert time.process_time() - began < 1, name

    use(make_service(), talk)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_random_bytes_are_refused(body):
    with pytest.raises(RequestError) as refused:
        parse_body(b"\x00" + body, EmbedRequest)
    assert refused.value.status == 422


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("a"), inner, max_size=2),
    max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(list(LayersRequest.model_fields)), _VALUES))
@settings(max_examples=300, deadline=None)
def test_random_objects_are_requests_or_name_a_field(content):
    try:
        asked = parse_body(orjson.dumps(content), LayersRequest)
    except RequestError as error:
        refused = error
    else:
        assert isinstance(asked.inputs, str | list)
        return
    assert refused.status == 422
    assert refused.field in LayersRequest.model_fields


def test_other_types_than_json_are_refused():
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        response = post("/embed", content=b'{"inputs": "a"}', headers={"content-type": kind})
        assert response.status_code == 415
        assert "application/json" in response.json()["error"]
    kind = {"content-type": "application/json; charset=utf-8"}
    assert post("/embed", content=b'{"inputs": "a"}', headers=kind).status_code == 200


LIMITS = Limits(max_body_bytes=1000)


def test_a_body_that_is_too_large_is_refused_by_its_declared_length():
    response = post(
        "/embed", content=b"x" * 1001, headers=JSON, service=make_service(limits=LIMITS)
    )
    assert response.status_code == 413
    assert "--max-body-bytes" in response.json()["error"]


def test_a_body_without_a_length_is_refused_when_it_becomes_too_large():
    sent = []

    async def parts():
        for _ in range(100):
            sent.append(1)
            yield b"x" * 100

    response = post("/embed", content=parts(), headers=JSON, service=make_service(limits=LIMITS))
    assert response.status_code == 413
    assert len(sent) < 15


def test_a_body_that_does_not_arrive_times_out():
    async def parts():
        yield b"{"
        await asyncio.sleep(5)

    limits = Limits(receive_seconds=0.05)
    response = post("/embed", content=parts(), headers=JSON, service=make_service(limits=limits))
    assert response.status_code == 408


def test_a_large_body_is_parsed_outside_the_event_loop():
    service = make_service()
    threads = []
    submit = service._parser.submit

    def note(*arguments):
        threads.append(True)
        return submit(*arguments)

    service._parser.submit = note

    async def talk(client):
        small = await client.post("/embed", json={"inputs": "a"})
        assert not threads
        return small, await client.post("/embed", json={"inputs": "a " * 3000})

    assert [answer.status_code for answer in use(service, talk)] == [200, 200]
    assert threads == [True]

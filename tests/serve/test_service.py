"""A request that is not answered leaves nothing behind."""

import asyncio
import threading

import pytest

from elmore.serve import service as service_module
from elmore.serve.admission import SHORT
from elmore.serve.app import make_app
from elmore.serve.lanes import Lane
from elmore.serve.settings import Limits
from tests.serve.services import make_service, use


def make_scope(body):
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/embed",
        "raw_path": b"/embed",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "headers": [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
    }


@pytest.mark.slow
def test_a_client_that_leaves_is_dropped_from_the_queue():
    """The first request occupies the lane; the second client leaves; the third is answered."""
    service = make_service()
    gate, computed = threading.Event(), []

    def run(works):
        gate.wait(10)
        computed.append([work.inputs.token_lists for work in works])
        return [[b"done"] for _ in works]

    service.lanes[SHORT] = Lane(run, batch_tokens=1000)

    async def call(app, text, *, leaves=None):
        body = b'{"inputs": "%s"}' % text
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        sent = []

        async def receive():
            if messages:
                return messages.pop()
            await (leaves.wait() if leaves else asyncio.Event().wait())
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await app(make_scope(body), receive, send)
        return sent

    async def talk():
        app = make_app(service)
        left = asyncio.Event()
        calls = [
            asyncio.create_task(call(app, b"first")),
            asyncio.create_task(call(app, b"second", leaves=left)),
            asyncio.create_task(call(app, b"third")),
        ]
        while service.admission.loads[SHORT].num_tokens < 9:
            await asyncio.sleep(0)
        left.set()
        await calls[1]
        assert service.admission.loads[SHORT].num_tokens == 6
        gate.set()
        answers = [await calls[0], await calls[2]]
        service.close()
        return answers

    answers = asyncio.run(talk())
    assert computed == [[[["first"]]], [[["third"]]]]
    assert [answer[-1]["body"] for answer in answers] == [b"done", b"done"]
    assert service.admission.loads[SHORT].num_tokens == 0
    assert b"elmore_disconnects_total 1.0" in service.metrics.render()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"inputs": "a"}, 200),
        ({"inputs": 1}, 422),
        ({"inputs": "a", "model": "x"}, 404),
        ({"inputs": "a " * 3000}, 413),
    ],
)
def test_the_queue_is_empty_after_any_answer(body, status):
    service = make_service(limits=Limits(max_request_tokens=1000))
    response = use(service, lambda client: client.post("/embed", json=body))
    assert response.status_code == status
    assert [load.num_tokens for load in service.admission.loads.values()] == [0, 0]
    assert service.admission.num_bytes == 0


def test_beyond_the_bound_requests_are_refused_and_the_accepted_ones_answered():
    service = make_service(limits=Limits(max_queue_tokens=12))

    async def talk(client):
        return await asyncio.gather(
            *(client.post("/embed", json={"inputs": "a b"}) for _ in range(10))
        )

    statuses = [answer.status_code for answer in use(service, talk)]
    assert set(statuses) == {200, 429}
    assert 1 <= statuses.count(200) < 10


def test_a_client_that_stops_reading_is_dropped():
    response = service_module.PartsResponse([b"a", b"b"], seconds_per_part=0.01)
    sent = []

    async def send(message):
        sent.append(message)
        if message.get("body") == b"a":
            await asyncio.sleep(5)

    asyncio.run(response({}, None, send))
    assert [message.get("body") for message in sent] == [None, b"a"]
    assert dict(sent[0]["headers"])[b"content-length"] == b"2"


def test_a_loaded_service_is_ready():
    service = make_service()
    service.phase = service_module.Phase.STARTING
    service.load()
    assert service.phase is service_module.Phase.READY
    assert [model.name for model in service.models] == ["english"]
    service.close()

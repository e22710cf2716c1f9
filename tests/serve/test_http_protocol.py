"""Headers are bounded in size and time; bodies of any length pass."""

import asyncio
import socket

import pytest
import uvicorn
from uvicorn.server import ServerState

from elmore.serve import http_protocol
from elmore.serve.http_protocol import MAX_HEADER_BYTES, BoundedProtocol
from tests.serve.processes import serving


@pytest.mark.slow
def test_headers_that_do_not_end_close_the_connection():
    with serving("--no-access-log") as server:
        for start in (b"GET /health HTTP/1.1\r\nx: ", b"GET /", b"GET /health HTTP/1.1\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
                client.sendall(start)
                part = b"y: z\r\n" * 1000 if start.endswith(b"1\r\n") else b"a" * 6000
                with pytest.raises(OSError, match=r"reset|pipe"):
                    client.sendall(part * 1000)
        large = {"inputs": ["the bank of the river ."] * 4, "user": "x" * (4 * MAX_HEADER_BYTES)}
        for _ in range(3):
            assert len(server.post("/embed", large)) == 4
        assert server.stop() == (0, "")


def talk_to(app, talk):
    """Let a client talk to an application over a connection."""

    async def run():
        config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False)
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: BoundedProtocol(config=config, server_state=state, app_state={}),
            "127.0.0.1",
            0,
        )
        async with server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                return await asyncio.wait_for(talk(reader, writer), 10)
            finally:
                writer.close()

    return asyncio.run(run())


def make_app(seconds):
    async def app(_scope, _receive, send):
        await asyncio.sleep(seconds)
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    return app


REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nho"])
def test_headers_that_do_not_come_close_the_connection(monkeypatch, sent):
    monkeypatch.setattr(http_protocol, "MAX_HEADER_SECONDS", 0.1)

    async def talk(reader, writer):
        writer.write(sent)
        return await reader.read()

    assert talk_to(make_app(0), talk) == b""


@pytest.mark.slow
def test_a_slow_answer_and_an_idle_connection_are_not_closed(monkeypatch):
    monkeypatch.setattr(http_protocol, "MAX_HEADER_SECONDS", 0.1)

    async def talk(reader, writer):
        answers = []
        for ending in (b"", b"GET / HTTP/1.1\r\n"):  # the second time, half of another follows
            writer.write(REQUEST + ending)
            answers.append(await reader.readuntil(b"ok"))
            await asyncio.sleep(0.2)
        return answers

    answers = talk_to(make_app(0.3), talk)
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)

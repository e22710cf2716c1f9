"""Headers are bounded; bodies of any length pass."""

import socket

import pytest

from elmore.serve.http_protocol import MAX_HEADER_BYTES
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

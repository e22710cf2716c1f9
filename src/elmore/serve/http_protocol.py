"""HTTP parsing with bounds on the size and the time of headers, which uvicorn's parser lacks."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 65_536
MAX_HEADER_SECONDS = 30.0


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose headers do not end or do not come."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._num_header_bytes = 0
        self._is_in_headers = True
        self._has_begun = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first headers."""
        super().connection_made(transport)
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived."""
        self._num_header_bytes += len(data)
        super().data_received(data)
        if self._is_in_headers and self._num_header_bytes > MAX_HEADER_BYTES:
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
                b"content-length: 0\r\n\r\n"
            )
            self.transport.close()
        elif self._has_begun and self._timer is None:
            self._wait_for_headers()

    def on_message_begin(self) -> None:
        """Note that headers have begun."""
        super().on_message_begin()
        self._has_begun = True

    def on_headers_complete(self) -> None:
        """Note that the body begins."""
        self._is_in_headers = self._has_begun = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the next headers may come."""
        super().on_message_complete()
        self._num_header_bytes = -MAX_HEADER_BYTES  # they may have begun in the same data
        self._is_in_headers = True

    def _wait_for_headers(self) -> None:
        self._timer = self.loop.call_later(MAX_HEADER_SECONDS, self._close_unless_answering)

    def _close_unless_answering(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self._wait_for_headers()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

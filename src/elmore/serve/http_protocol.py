"""HTTP parsing with a bound on headers, which uvicorn's parser lacks."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 65_536


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose headers do not end."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._num_header_bytes = 0
        self._is_in_headers = True

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

    def on_headers_complete(self) -> None:
        """Note that the body begins."""
        self._is_in_headers = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the next headers begin."""
        super().on_message_complete()
        self._num_header_bytes = -MAX_HEADER_BYTES  # they may have begun in the same data
        self._is_in_headers = True

"""What every request passes first: the API key, admission, the access log and the counters."""

import hmac
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmore.serve.errors import RequestError, make_error_response
from elmore.serve.page_files import is_page_file
from elmore.serve.service import Service

access_logger = logging.getLogger("elmore.serve.access")

PUBLIC = frozenset({"/health", "/ready"})
CLIENT_GONE = 499


class Guard:
    """Asks for the key and counts requests; logs routes, never texts or query strings."""

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self._app = app
        self._service = service
        key = service.settings.api_key
        self._expected = None if key is None else f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = CLIENT_GONE

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, send_and_note)
        except RequestError as error:
            response = make_error_response(error, path=scope["path"])
            await response(scope, receive, send_and_note)
        finally:
            self._note(scope, status=status, seconds=time.perf_counter() - started)

    def _check(self, scope: Scope) -> None:
        """Refuse a request before anything is done for it; refusing must cost little."""
        is_public = scope["path"] in PUBLIC or is_page_file(scope["path"])
        if self._expected is not None and not is_public:
            given = _find_header(scope, b"authorization")
            if not hmac.compare_digest(given, self._expected):
                raise RequestError(
                    401,
                    "the API key is missing or wrong; send it as Authorization: Bearer KEY",
                    headers={"www-authenticate": "Bearer"},
                )
        if scope["method"] == "POST":
            self._service.admission.check_arrival(read_length(scope))

    def _note(self, scope: Scope, *, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._service.metrics.count_request(route=route, status=status, seconds=seconds)
        if self._service.settings.has_access_log:
            client = (scope.get("client") or ("-", 0))[0]
            access_logger.info(
                "%s %s %s %d %.1f ms", client, scope["method"], route, status, 1000 * seconds
            )


def read_length(scope: Scope) -> int:
    """Return the declared length of the body; 0 if it is sent in chunks."""
    text = _find_header(scope, b"content-length")
    return int(text) if text.isdigit() else 0


def _find_header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")

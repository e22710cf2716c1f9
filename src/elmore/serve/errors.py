"""Requests that are refused: a status, one sentence, and the field that is wrong."""

from collections.abc import Mapping

import orjson
from starlette.responses import Response

# The names of text-embeddings-inference, and OpenAI's.
_KINDS = {
    400: ("Validation", "invalid_request_error"),
    401: ("Unauthorized", "authentication_error"),
    404: ("NotFound", "not_found_error"),
    405: ("Validation", "invalid_request_error"),
    408: ("Timeout", "invalid_request_error"),
    413: ("TooLarge", "invalid_request_error"),
    415: ("Validation", "invalid_request_error"),
    422: ("Validation", "invalid_request_error"),
    429: ("Overloaded", "rate_limit_error"),
    503: ("Unhealthy", "service_unavailable_error"),
}


class RequestError(Exception):
    """A request that is not answered as asked."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.headers = dict(headers or {})


class ClientGoneError(Exception):
    """The client disconnected, so nobody waits for the answer."""


def make_error_response(error: RequestError, *, path: str) -> Response:
    """Return the error in OpenAI's form on its routes, in text-embeddings-inference's on others."""
    kind, openai_kind = _KINDS.get(error.status, ("Backend", "server_error"))
    if path.startswith("/v1/"):
        detail = {
            "message": error.message,
            "type": openai_kind,
            "param": error.field,
            "code": kind.lower(),
        }
        content: dict[str, object] = {"error": detail}
    else:
        content = {"error": error.message, "error_type": kind, "field": error.field}
    return Response(
        orjson.dumps(content),
        status_code=error.status,
        headers=error.headers,
        media_type="application/json",
    )

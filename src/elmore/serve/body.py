"""Receive the body of a request and make a checked object of it."""

import asyncio
from typing import Any, TypeVar

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from elmore.serve.admission import Admission
from elmore.serve.errors import ClientGoneError, RequestError

_Schema = TypeVar("_Schema", bound=BaseModel)


async def receive_body(request: Request, admission: Admission) -> bytes:
    """Return the body, whose declared length has been checked already."""
    _check_type(request)
    parts: list[bytes] = []
    try:
        async with asyncio.timeout(admission.limits.receive_seconds):
            with admission.receiving() as received:
                async for part in request.stream():
                    received.add(len(part))
                    parts.append(part)
    except TimeoutError:
        raise RequestError(
            408,
            f"the body did not arrive within {admission.limits.receive_seconds:g} s; send it again",
            headers={"connection": "close"},
        ) from None
    except ClientDisconnect:
        raise ClientGoneError from None
    return b"".join(parts)


def parse_body(body: bytes, schema: type[_Schema]) -> _Schema:
    """Return the request in a body of JSON."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(
            422, f"the body is not valid JSON ({error.msg}, line {error.lineno}); send one object"
        ) from None
    try:
        return schema.model_validate(content)
    except ValidationError as error:
        raise explain(error) from None


def _check_type(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        # Also keeps web pages of other origins from sending requests without being asked.
        raise RequestError(
            415, f"content-type is {kind[:60]!r}; send JSON, with content-type: application/json"
        )


# The union of several types would be explained by several sentences.
_TEXTS = (
    "a text",
    "a text, or a list of texts or lists of token strings (tokens are words here, not numbers)",
)
_USE = ("the number of a use", 'the number of a use, or {"sentence": ..., "token": ...}')
_EXPECTED = {"input": _TEXTS, "inputs": _TEXTS, "use": _USE, "other": _USE}


def explain(error: ValidationError | RequestValidationError, *, skip: int = 0) -> RequestError:
    """Return one sentence about the first mistake; `skip` parts of its place are not the field."""
    first: Any = error.errors()[0]
    place = first["loc"][skip:]
    if not place:
        return RequestError(422, "the body is not a JSON object; send an object")
    field = str(place[0])[:60]
    if field in _EXPECTED and first["type"] != "extra_forbidden":
        short, full = _EXPECTED[field]
        is_missing = first["type"] == "missing"
        reason = f"is missing; give {short}" if is_missing else f"must be {full}"
        return RequestError(422, f"{field} {reason}", field=field)
    reason = first["msg"][0].lower() + first["msg"][1:]
    return RequestError(422, f"{field} is wrong: {reason[:200]}", field=field)

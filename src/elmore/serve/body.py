"""Receive the body of a request and make a checked object of it."""

import asyncio
from typing import Any, TypeVar

import orjson
from fastapi import Request
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
        raise _explain(error) from None


def _check_type(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        # Also keeps web pages of other origins from sending requests without being asked.
        raise RequestError(
            415, f"content-type is {kind[:60]!r}; send JSON, with content-type: application/json"
        )


def _explain(error: ValidationError) -> RequestError:
    """Return one sentence about the first mistake."""
    first: Any = error.errors(include_url=False, include_input=False)[0]
    if not first["loc"]:
        return RequestError(422, "the body is not a JSON object; send an object")
    field = str(first["loc"][0])
    if field in ("input", "inputs"):
        # The union of several types would be explained by several sentences.
        return RequestError(
            422,
            f"{field} is missing; give a text"
            if first["type"] == "missing"
            else f"{field} must be a text, or a list of texts or lists of token strings "
            "(tokens are words here, not numbers)",
            field=field,
        )
    reason = first["msg"][0].lower() + first["msg"][1:]
    return RequestError(422, f"{field[:60]} is wrong: {reason[:200]}", field=field[:60])

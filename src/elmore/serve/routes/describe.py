"""What /openapi.json says about a route whose body is parsed by the service."""

from typing import Any

from pydantic import BaseModel

from elmore.serve.errors import RequestError
from elmore.serve.schemas import ErrorAnswer

_REASONS = {
    401: "The API key is missing or wrong.",
    404: "There is no such model, or it cannot do this.",
    408: "The body did not arrive in time.",
    413: "The body, a sentence, the request or the answer is too large.",
    415: "The body is not JSON.",
    422: "The request is invalid; `field` names what is wrong.",
    429: "The server is overloaded; see Retry-After.",
    503: "The server is starting or stopping.",
}


def describe(
    schema: type[BaseModel], answer: type[BaseModel] | dict[str, Any], **other_types: Any
) -> dict[str, Any]:
    """Return the arguments of a route: the schemas of its body, its answer and its errors."""
    body = _inline(schema.model_json_schema())
    content: dict[str, Any] = dict(other_types.get("content", {}))
    success: dict[str, Any] = {"description": "The answer."}
    if isinstance(answer, dict):
        content["application/json"] = {"schema": answer}
    else:
        success["model"] = answer
    if content:
        success["content"] = content
    return {
        "responses": {200: success, **_describe_errors(_REASONS)},
        "openapi_extra": {
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": body}},
            }
        },
    }


def describe_query(answer: type[BaseModel]) -> dict[str, Any]:
    """Return the arguments of a route without a body: the schemas of its answer and its errors."""
    statuses = (401, 404, 413, 422, 429, 503)
    errors = _describe_errors({status: _REASONS[status] for status in statuses})
    return {"responses": {200: {"description": "The answer.", "model": answer}, **errors}}


def _describe_errors(reasons: dict[int, str]) -> dict[int | str, Any]:
    return {
        status: {"description": reason, "model": ErrorAnswer} for status, reason in reasons.items()
    }


def _inline(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace references by what they refer to, since a route has no place for definitions."""
    definitions = schema.pop("$defs", {})

    def replace(value: Any) -> Any:
        if isinstance(value, list):
            return [replace(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return replace(definitions[value["$ref"].removeprefix("#/$defs/")])
        return {name: replace(item) for name, item in value.items()}

    inlined: dict[str, Any] = replace(schema)
    return inlined


def check_dimensions(dimensions: int | None, *, width: int) -> None:
    """Refuse any width but the model's own."""
    if dimensions is not None and dimensions != width:
        raise RequestError(
            422,
            f"dimensions is {dimensions}, but this model's vectors have {width} numbers and cannot "
            "be shortened; leave dimensions out",
            field="dimensions",
        )


def check_answer_size(num_bytes: int, *, max_bytes: int) -> None:
    """Refuse a request whose answer would be too large."""
    if num_bytes > max_bytes:
        raise RequestError(
            413,
            f"the answer would have about {num_bytes // 1_000_000} MB, more than the server's "
            f"--max-answer-bytes {max_bytes}; split the request, or ask for fewer layers, base64 "
            "or raw",
        )

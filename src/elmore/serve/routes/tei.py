"""The routes of text-embeddings-inference: one vector per input, or one per token."""

from collections.abc import Callable, Iterable

from fastapi import APIRouter, Request
from starlette.responses import Response

from elmore.serve.encoding import Array, count_bytes, encode_list, encode_numbers
from elmore.serve.errors import RequestError
from elmore.serve.inputs import parse_inputs
from elmore.serve.routes.describe import check_answer_size, check_dimensions, describe
from elmore.serve.routes.openai import pool_tokens
from elmore.serve.schemas import EmbedAllRequest, EmbedRequest
from elmore.serve.service import Plan, Service
from elmore.serve.works import EmbedWork

_NUMBERS = {"type": "array", "items": {"type": "number"}}
_ROWS = {"type": "array", "items": _NUMBERS}


def make_router(service: Service) -> APIRouter:
    """Return /embed and /embed_all."""
    router = APIRouter(tags=["text-embeddings-inference"])

    def plan_embed(asked: EmbedRequest) -> Plan:
        def encode(vectors: list[Array]) -> Iterable[bytes]:
            return encode_numbers(pool_tokens(vectors, is_normalized=asked.normalize))

        width = service.find_model(asked.model).embedder.vector_dim
        check_dimensions(asked.dimensions, width=width)
        return _plan(service, asked, encode, allows_empty=False)

    def plan_embed_all(asked: EmbedAllRequest) -> Plan:
        planned = _plan(service, asked, encode_list, allows_empty=True)
        width = service.find_model(asked.model).embedder.vector_dim
        check_answer_size(
            count_bytes(planned.work.num_tokens * width, form="json"),
            max_bytes=service.limits.max_answer_bytes,
        )
        return planned

    @router.post("/embed", **describe(EmbedRequest, _ROWS))
    async def embed(request: Request) -> Response:
        """Return one vector per input: the mean over its tokens, of length 1."""
        return await service.answer(request, EmbedRequest, plan_embed)

    @router.post("/embed_all", **describe(EmbedAllRequest, {"type": "array", "items": _ROWS}))
    async def embed_all(request: Request) -> Response:
        """Return one vector per token of each input."""
        return await service.answer(request, EmbedAllRequest, plan_embed_all)

    return router


def _plan(
    service: Service,
    asked: EmbedRequest | EmbedAllRequest,
    encode: Callable[[list[Array]], Iterable[bytes]],
    *,
    allows_empty: bool,
) -> Plan:
    if asked.prompt_name is not None:
        raise RequestError(
            422, "prompt_name must be null: this model has no prompts", field="prompt_name"
        )
    embedder = service.find_model(asked.model).embedder
    inputs = parse_inputs(
        embedder,
        asked.inputs,
        field="inputs",
        max_tokens=service.limits.max_request_tokens,
        truncate=bool(asked.truncate),
        keep_end=asked.truncation_direction.lower() == "left",
        allows_empty=allows_empty,
    )
    truncated = {"x-truncated-inputs": str(inputs.num_truncated)} if inputs.num_truncated else {}
    return Plan(
        work=EmbedWork(embedder=embedder, inputs=inputs, encode=encode),
        headers=truncated,
    )

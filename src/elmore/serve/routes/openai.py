"""OpenAI's embeddings: one vector per input, the mean over its tokens."""

from collections.abc import Iterator

import numpy as np
import orjson
from fastapi import APIRouter, Request
from starlette.responses import Response

from elmore.serve.encoding import Array, encode_base64, encode_numbers, normalize
from elmore.serve.inputs import parse_inputs
from elmore.serve.routes.describe import check_dimensions, describe
from elmore.serve.schemas import EmbeddingsAnswer, EmbeddingsRequest
from elmore.serve.service import Plan, Service
from elmore.serve.works import EmbedWork


def make_router(service: Service) -> APIRouter:
    """Return the routes under /v1."""
    router = APIRouter(tags=["OpenAI"])

    def plan(asked: EmbeddingsRequest) -> Plan:
        model = service.find_model(asked.model)
        embedder = model.embedder
        check_dimensions(asked.dimensions, width=embedder.vector_dim)
        inputs = parse_inputs(
            embedder,
            asked.input,
            field="input",
            max_tokens=service.limits.max_request_tokens,
            allows_empty=False,
        )
        num_tokens = sum(map(len, inputs.token_lists))

        def encode(vectors: list[Array]) -> Iterator[bytes]:
            pooled = pool_tokens(vectors, is_normalized=asked.normalize)
            yield b'{"object":"list","data":['
            for index, vector in enumerate(pooled):
                yield b'%s{"object":"embedding","index":%d,"embedding":' % (
                    b"," if index else b"",
                    index,
                )
                if asked.encoding_format == "base64":
                    yield encode_base64(vector)
                else:
                    yield from encode_numbers(vector)
                yield b"}"
            usage = {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
            yield b'],"model":%s,"usage":%s}' % (orjson.dumps(model.name), orjson.dumps(usage))

        return Plan(work=EmbedWork(embedder=embedder, inputs=inputs, encode=encode))

    @router.post("/v1/embeddings", **describe(EmbeddingsRequest, EmbeddingsAnswer))
    async def embeddings(request: Request) -> Response:
        """Return one vector per input, as OpenAI's API does."""
        return await service.answer(request, EmbeddingsRequest, plan)

    @router.get("/v1/models")
    async def models() -> dict[str, object]:
        """List the models."""
        service.require_ready()
        listed = [
            {"id": model.name, "object": "model", "created": 0, "owned_by": "elmore"}
            for model in service.models
        ]
        return {"object": "list", "data": listed}

    return router


def pool_tokens(vectors: list[Array], *, is_normalized: bool) -> Array:
    """Return (sentences, D): the mean over tokens, as `Embedder.sentence_vectors` computes it."""
    pooled = np.stack([sentence.mean(axis=0) for sentence in vectors])
    return normalize(pooled) if is_normalized else pooled

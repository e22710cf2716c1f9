"""All layers of every token, or a mix of them, with the tokens and where they are in the text."""

from collections.abc import Hashable, Iterator
from typing import Any

import orjson
from fastapi import APIRouter, Request
from starlette.responses import Response

from elmore import ElmoreError, ScalarMix
from elmore.serve.encoding import (
    Array,
    count_bytes,
    encode_base64,
    encode_numbers,
    encode_raw,
)
from elmore.serve.errors import RequestError
from elmore.serve.inputs import InputSentence, parse_inputs
from elmore.serve.routes.describe import check_answer_size, describe
from elmore.serve.schemas import LayersAnswer, LayersRequest
from elmore.serve.served_models import ServedModel
from elmore.serve.service import JSON, Plan, Service
from elmore.serve.works import EmbedWork

RAW = "application/octet-stream"
# In a raw answer the numbers start at a multiple of this, so that they can be used in place.
ALIGNMENT = 8


def make_router(service: Service) -> APIRouter:
    """Return /layers."""
    router = APIRouter(tags=["layers"])

    def plan(asked: LayersRequest) -> Plan:
        model = service.find_model(asked.model)
        layers, key = choose_layers(asked, model)
        choice = model.embedder.choose_layers(layers)
        inputs = parse_inputs(
            model.embedder,
            asked.inputs,
            field="inputs",
            max_tokens=service.limits.max_request_tokens,
        )
        num_tokens = sum(map(len, inputs.token_lists))
        num_numbers = num_tokens * (choice.num_kept or 1) * model.embedder.vector_dim
        check_answer_size(
            count_bytes(num_numbers, form=asked.format, dtype=asked.dtype),
            max_bytes=service.limits.max_answer_bytes,
        )
        head = {"model": model.name, "layers": str(choice), "dtype": asked.dtype}

        def encode(vectors: list[Array]) -> Iterator[bytes]:
            if asked.format == "raw":
                return encode_raw_answer(head, inputs.sentences, vectors)
            return encode_json_answer(
                head, inputs.sentences, vectors, is_base64=asked.format == "base64"
            )

        return Plan(
            work=EmbedWork(
                embedder=model.embedder,
                inputs=inputs,
                encode=encode,
                layers=layers,
                layers_key=key,
            ),
            media_type=RAW if asked.format == "raw" else JSON,
        )

    raw = {RAW: {"schema": {"type": "string", "format": "binary"}}}

    @router.post("/layers", **describe(LayersRequest, LayersAnswer, content=raw))
    async def layers(request: Request) -> Response:
        """Return the tokens of each input, their offsets, and their vectors in chosen layers."""
        return await service.answer(request, LayersRequest, plan)

    return router


def choose_layers(asked: LayersRequest, model: ServedModel) -> tuple[Any, Hashable]:
    """Return the layers for the embedder, and a key that is equal for equal layers."""
    try:
        if asked.mix is not None:
            if len(asked.mix) != model.embedder.num_layers:
                raise RequestError(
                    422,
                    f"mix has {len(asked.mix)} weights, but the model has "
                    f"{model.embedder.num_layers} layers; give one weight per layer",
                    field="mix",
                )
            mix = ScalarMix.from_weights(asked.mix)
            model.embedder.choose_layers(mix)
            return mix, ("mix", *asked.mix)
        choice = model.embedder.choose_layers(asked.layers)
    except ElmoreError as error:
        raise RequestError(422, str(error), field="mix" if asked.mix else "layers") from None
    return asked.layers, str(choice)


def encode_json_answer(
    head: dict[str, Any], sentences: list[InputSentence], vectors: list[Array], *, is_base64: bool
) -> Iterator[bytes]:
    """Yield the parts of an answer in JSON, with nested lists or base64."""
    yield orjson.dumps(head)[:-1] + b',"sentences":['
    for index, (sentence, array) in enumerate(zip(sentences, vectors, strict=True)):
        facts = {"tokens": sentence.tokens, "offsets": sentence.offsets, "shape": array.shape}
        yield (b"," if index else b"") + orjson.dumps(facts)[:-1] + b',"vectors":'
        if is_base64:
            yield encode_base64(array, dtype=head["dtype"])
        else:
            yield from encode_numbers(array)
        yield b"}"
    yield b"]}"


def encode_raw_answer(
    head: dict[str, Any], sentences: list[InputSentence], vectors: list[Array]
) -> Iterator[bytes]:
    """Yield a line of JSON, then the numbers of all sentences."""
    facts = [
        {"tokens": sentence.tokens, "offsets": sentence.offsets, "shape": array.shape}
        for sentence, array in zip(sentences, vectors, strict=True)
    ]
    line = orjson.dumps({**head, "sentences": facts})
    yield line + b" " * (-(len(line) + 1) % ALIGNMENT) + b"\n"
    for array in vectors:
        yield encode_raw(array, dtype=head["dtype"])

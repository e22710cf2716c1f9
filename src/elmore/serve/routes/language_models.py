"""Tokens, scores and gaps: what the language model behind the vectors can do."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
from fastapi import APIRouter, Request
from starlette.responses import Response

from elmore import Embedder
from elmore.serve.admission import LONG
from elmore.serve.errors import RequestError
from elmore.serve.inputs import ParsedInputs, check_cost, parse_inputs
from elmore.serve.routes.describe import describe
from elmore.serve.schemas import (
    FillAnswer,
    FillRequest,
    ScoreAnswer,
    ScoreRequest,
    TokenizeAnswer,
    TokenizeRequest,
)
from elmore.serve.served_models import ServedModel
from elmore.serve.service import Plan, Service
from elmore.serve.works import CallWork

# A gap is filled by scoring the sentence with this many words, so it costs as much.
NUM_CANDIDATES = 50


def make_router(service: Service) -> APIRouter:
    """Return /tokenize, /score and /fill."""
    router = APIRouter(tags=["language model"])

    def parse(embedder: Embedder, inputs: Any, *, field: str = "inputs") -> ParsedInputs:
        max_tokens = service.limits.max_request_tokens
        return parse_inputs(embedder, inputs, field=field, max_tokens=max_tokens)

    def plan_tokenize(asked: TokenizeRequest) -> Plan:
        model = service.find_model(asked.model)
        inputs = parse(model.embedder, asked.inputs)

        def call() -> Iterator[bytes]:
            facts = [
                {"tokens": sentence.tokens, "offsets": sentence.offsets}
                for sentence in inputs.sentences
            ]
            yield orjson.dumps({"model": model.name, "sentences": facts})

        return Plan(work=CallWork(call=call, num_tokens=len(inputs.sentences)))

    def plan_score(asked: ScoreRequest) -> Plan:
        model = require_lm_head(service.find_model(asked.model))
        inputs = parse(model.embedder, asked.inputs)
        if not all(inputs.token_lists):
            raise RequestError(
                422, "inputs has a text without tokens; remove it, or give some", field="inputs"
            )
        return Plan(
            work=CallWork(call=_score(model, inputs), num_tokens=inputs.num_tokens), lane=LONG
        )

    def plan_fill(asked: FillRequest) -> Plan:
        model = require_lm_head(service.find_model(asked.model))
        given = asked.input if isinstance(asked.input, str) else [asked.input]
        inputs = parse(model.embedder, given, field="input")
        cost = NUM_CANDIDATES * inputs.num_tokens
        check_cost(cost, field="input", max_tokens=service.limits.max_request_tokens)
        (tokens,) = inputs.token_lists
        if tokens.count("___") != 1:
            raise RequestError(
                422,
                f"input has {tokens.count('___')} gaps; write exactly one, as ___ with spaces "
                "around it",
                field="input",
            )

        def call() -> Iterator[bytes]:
            fillings = [
                {
                    "word": filling.word,
                    "forward_lm": filling.forward_lm,
                    "backward_lm": filling.backward_lm,
                    "probability": filling.probability,
                }
                for filling in model.embedder.fill(tokens, top=asked.top)
            ]
            yield orjson.dumps({"model": model.name, "tokens": tokens, "fillings": fillings})

        return Plan(work=CallWork(call=call, num_tokens=cost), lane=LONG)

    @router.post("/tokenize", **describe(TokenizeRequest, TokenizeAnswer))
    async def tokenize(request: Request) -> Response:
        """Return the tokens of each text, and where they are in it."""
        return await service.answer(request, TokenizeRequest, plan_tokenize)

    @router.post("/score", **describe(ScoreRequest, ScoreAnswer))
    async def score(request: Request) -> Response:
        """Return the log-probability of every token, from the left and from the right."""
        return await service.answer(request, ScoreRequest, plan_score)

    @router.post("/fill", **describe(FillRequest, FillAnswer))
    async def fill(request: Request) -> Response:
        """Return the words that fit best in the gap of a sentence."""
        return await service.answer(request, FillRequest, plan_fill)

    return router


def require_lm_head(model: ServedModel) -> ServedModel:
    """Refuse what a model without an LM head cannot do."""
    if not model.has_lm_head:
        raise RequestError(
            404,
            f"the model {model.name!r} has no LM head, so it cannot score or predict words "
            "(published models come without one); train or fine-tune a model with elmore",
            field="model",
        )
    return model


def _score(model: ServedModel, inputs: ParsedInputs) -> Callable[[], Iterator[bytes]]:
    def call() -> Iterator[bytes]:
        found = model.embedder.score(inputs.token_lists)
        facts = [
            {
                "tokens": sentence.tokens,
                "offsets": sentence.offsets,
                "is_known": score.is_known,
                "forward_lm": score.forward_per_token,
                "backward_lm": score.backward_per_token,
                "begin": score.backward_lm[0],
                "end": score.forward_lm[-1],
                "forward_total": score.forward_total,
                "backward_total": score.backward_total,
            }
            for sentence, score in zip(inputs.sentences, found, strict=True)
        ]
        yield orjson.dumps({"model": model.name, "sentences": facts})

    return call

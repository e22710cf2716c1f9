"""What else the page shows: similar tokens of one sentence, and predictions of trained tasks."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from elmore import token_similarity
from elmore.serve.admission import LONG
from elmore.serve.encoding import count_bytes
from elmore.serve.errors import RequestError
from elmore.serve.explore_schemas import (
    PredictAnswer,
    PredictRequest,
    SimilarityAnswer,
    SimilarityRequest,
)
from elmore.serve.inputs import check_cost, parse_inputs
from elmore.serve.routes.describe import check_answer_size, describe
from elmore.serve.routes.json_plans import plan_json
from elmore.serve.served_tasks import find_task
from elmore.serve.service import Plan, Service


def make_router(service: Service) -> APIRouter:
    """Return /similarity and /predict."""
    router = APIRouter(tags=["sentences"])

    def plan_similarity(asked: SimilarityRequest) -> Plan:
        model = service.find_model(asked.model)
        embedder = model.embedder
        given = asked.input if isinstance(asked.input, str) else [asked.input]
        inputs = parse_inputs(
            embedder,
            given,
            field="input",
            max_tokens=service.limits.max_request_tokens,
            allows_empty=False,
        )
        (tokens,) = inputs.token_lists
        num_matrices = embedder.num_layers * (embedder.num_layers + 1)
        num_bytes = count_bytes(num_matrices * len(tokens) ** 2, form="json")
        check_answer_size(num_bytes, max_bytes=service.limits.max_answer_bytes)

        def call() -> dict[str, Any]:
            return {"model": model.name, **asdict(token_similarity(embedder, tokens))}

        # The cosines of all pairs take about as long as embedding a tenth as many tokens.
        cost = inputs.num_tokens + len(tokens) ** 2 // 10
        return plan_json(service, call, cost=cost, lane=LONG)

    def plan_predict(asked: PredictRequest) -> Plan:
        task = find_task(service.tasks, asked.task)
        example = task.parse(asked.input)
        num_tokens = task.model.task.count_tokens(example)
        if not num_tokens:
            raise RequestError(422, "input has no tokens; give some text", field="input")
        check_cost(num_tokens, field="input", max_tokens=service.limits.max_request_tokens)

        def call() -> dict[str, Any]:
            (prediction,) = task.model.describe([example])
            return {"task": task.name, "kind": task.kind, "prediction": prediction}

        return plan_json(service, call, cost=num_tokens, lane=LONG)

    @router.post("/similarity", **describe(SimilarityRequest, SimilarityAnswer))
    async def similarity(request: Request) -> Response:
        """Return how similar the tokens of a sentence are to each other, in each layer."""
        return await service.answer(request, SimilarityRequest, plan_similarity)

    @router.post("/predict", **describe(PredictRequest, PredictAnswer))
    async def predict(request: Request) -> Response:
        """Return the prediction of a trained task, with its probabilities."""
        return await service.answer(request, PredictRequest, plan_predict)

    return router

"""Similar uses: the nearest ones in an index, and the cosine of two."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from elmore.serve.admission import LONG
from elmore.serve.explore_schemas import (
    CompareAnswer,
    CompareRequest,
    NearestAnswer,
    NearestRequest,
    TypedToken,
)
from elmore.serve.inputs import parse_inputs
from elmore.serve.routes.describe import describe
from elmore.serve.routes.json_plans import plan_json
from elmore.serve.served_index import ServedIndex
from elmore.serve.service import Plan, Service

# In tokens that are embedded in the same time: about 0.1 ms each.
_PER_SEARCH = 1000
_PER_COMPARISON = 100


def make_router(service: Service) -> APIRouter:
    """Return /nearest and /compare."""
    router = APIRouter(tags=["uses of words"])

    def check_typed(index: ServedIndex, *uses: int | TypedToken) -> int:
        """Refuse typed sentences beyond the limits; return their tokens."""
        num_tokens = 0
        for use in uses:
            if isinstance(use, TypedToken) and index.model is not None:
                given = use.sentence if isinstance(use.sentence, str) else [use.sentence]
                most = service.limits.max_request_tokens
                embedder = index.model.embedder
                parsed = parse_inputs(embedder, given, field="sentence", max_tokens=most)
                num_tokens += parsed.num_tokens
        return num_tokens

    def plan_nearest(asked: NearestRequest) -> Plan:
        index = service.require_index()
        cost = _PER_SEARCH + check_typed(index, asked.use)

        def call() -> dict[str, Any]:
            query = index.find_query(asked.use)
            found = index.index.nearest(
                query,
                asked.layer,
                top=asked.top,
                word=asked.word,
                match_case=asked.match_case,
                source=asked.source,
                tag=asked.tag,
            )
            return {
                "layer": asked.layer,
                "query": index.locate(query),
                "uses": [asdict(near) for near in found],
            }

        return plan_json(service, call, cost=cost, lane=LONG)

    def plan_compare(asked: CompareRequest) -> Plan:
        index = service.require_index()
        cost = _PER_COMPARISON + check_typed(index, asked.use, asked.other)

        def call() -> dict[str, Any]:
            use, other = index.find_query(asked.use), index.find_query(asked.other)
            cosines = index.index.compare(use, other)
            return {
                "use": index.locate(use),
                "other": index.locate(other),
                "layers": list(cosines),
                "cosines": list(cosines.values()),
            }

        return plan_json(service, call, cost=cost, lane=LONG)

    @router.post("/nearest", **describe(NearestRequest, NearestAnswer))
    async def nearest(request: Request) -> Response:
        """Return the uses whose vectors are most similar to that of a given use."""
        return await service.answer(request, NearestRequest, plan_nearest)

    @router.post("/compare", **describe(CompareRequest, CompareAnswer))
    async def compare(request: Request) -> Response:
        """Return the cosine of two uses in each layer."""
        return await service.answer(request, CompareRequest, plan_compare)

    return router

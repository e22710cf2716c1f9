"""Uses of words in an index: lists, maps and groups."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from elmore.serve.admission import LONG
from elmore.serve.explore_schemas import (
    GroupsAnswer,
    GroupsQuery,
    MapAnswer,
    MapQuery,
    UsesAnswer,
    UsesQuery,
    WordsAnswer,
    WordsQuery,
)
from elmore.serve.routes.describe import describe_query
from elmore.serve.routes.json_plans import plan_json
from elmore.serve.service import Service

# What a query costs, in tokens that are embedded in the same time: about 0.1 ms each.
_PER_LIST = 100
_PER_MAPPED_USE = {"pca": 1, "tsne": 20}
_PER_GROUPED_USE = 10


def make_router(service: Service) -> APIRouter:
    """Return /words, /uses, /map and /groups."""
    router = APIRouter(tags=["uses of words"])

    @router.get("/words", **describe_query(WordsAnswer))
    async def words(request: Request, query: Annotated[WordsQuery, Query()]) -> Response:
        """Return the most frequent words of the index that start with a prefix."""
        index = service.require_index()

        def call() -> dict[str, object]:
            words = index.words(query.prefix, top=query.top, skip_stop_words=query.skip_stop_words)
            return {"words": words}

        plan = plan_json(service, call, cost=_PER_LIST)
        return await service.answer_query(request, plan)

    @router.get("/uses", **describe_query(UsesAnswer))
    async def uses(request: Request, query: Annotated[UsesQuery, Query()]) -> Response:
        """Return the uses of a word, with their sentences."""
        index = service.require_index()
        return await service.answer_query(
            request, plan_json(service, lambda: index.uses(query), cost=_PER_LIST)
        )

    @router.get("/map", **describe_query(MapAnswer))
    async def map_uses(request: Request, query: Annotated[MapQuery, Query()]) -> Response:
        """Return a point for each use of a word: by PCA at once, by t-SNE in seconds."""
        index = service.require_index()
        cost = _PER_LIST + _PER_MAPPED_USE[query.method] * query.limit
        plan = plan_json(service, lambda: index.map(query), cost=cost, lane=LONG)
        return await service.answer_query(request, plan)

    @router.get("/groups", **describe_query(GroupsAnswer))
    async def groups(request: Request, query: Annotated[GroupsQuery, Query()]) -> Response:
        """Divide the uses of a word into groups with similar vectors."""
        index = service.require_index()
        cost = _PER_LIST + _PER_GROUPED_USE * query.limit
        plan = plan_json(service, lambda: index.groups(query), cost=cost, lane=LONG)
        return await service.answer_query(request, plan)

    return router

"""Plans of requests that are answered by one JSON object and share nothing with others."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from elmore.serve.routes.describe import check_answer_size
from elmore.serve.service import Plan, Service
from elmore.serve.works import CallWork


def plan_json(
    service: Service, call: Callable[[], Any], *, cost: int, lane: str | None = None
) -> Plan:
    """Return a plan to send what `call` returns; `cost` is in tokens embedded in the same time."""

    def encode() -> Iterator[bytes]:
        body = orjson.dumps(call())
        check_answer_size(len(body), max_bytes=service.limits.max_answer_bytes)
        yield body

    return Plan(work=CallWork(call=encode, num_tokens=cost), lane=lane)

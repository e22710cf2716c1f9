"""From a request to its answer: admission, parsing, a lane, and the parts of the body."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from elmore import open_index
from elmore.serve.admission import LONG, SHORT, Admission, Ticket
from elmore.serve.body import parse_body, receive_body
from elmore.serve.errors import ClientGoneError, RequestError
from elmore.serve.lanes import BatchReport, Lane, Work, lower_priority
from elmore.serve.metrics import Metrics
from elmore.serve.served_index import ServedIndex
from elmore.serve.served_models import ServedModel, find_model, load_models
from elmore.serve.served_tasks import ServedTask, load_tasks
from elmore.serve.settings import ServeSettings
from elmore.serve.works import run_works

logger = logging.getLogger(__name__)

JSON = "application/json"
# Larger bodies are parsed and tokenized in a thread, so that other requests are not held up.
MAX_BYTES_PARSED_AT_ONCE = 4096
# Threads that compute give way to the one that accepts and refuses requests, and long requests to
# short ones. Otherwise, when all cores compute, a refusal waits for its turn like a computation.
_NICENESS = {SHORT: 1, LONG: 6}

_Schema = TypeVar("_Schema", bound=BaseModel)


class Phase(StrEnum):
    """Whether requests are accepted."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a request asks to compute."""

    work: Work
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    lane: str | None = None
    """The lane if it does not depend on the number of tokens."""


class PartsResponse(Response):
    """An answer that is sent in parts; a client that stops reading is dropped."""

    def __init__(self, parts: list[bytes], *, seconds_per_part: float, **options: Any) -> None:
        super().__init__(**options)
        self._parts = parts
        self._seconds = seconds_per_part
        self.headers["content-length"] = str(sum(map(len, parts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the parts."""
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        for number, part in enumerate(self._parts, start=1):
            is_last = number == len(self._parts)
            try:
                async with asyncio.timeout(self._seconds):
                    await send(
                        {"type": "http.response.body", "body": part, "more_body": not is_last}
                    )
            except TimeoutError:
                return  # the connection is closed, since the answer is incomplete


class Service:
    """The models, lanes and counters of one server process."""

    def __init__(self, settings: ServeSettings, *, metrics: Metrics | None = None) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.phase = Phase.STARTING
        self.metrics = metrics or Metrics()
        self.admission = Admission(settings.limits)
        self.models: list[ServedModel] = []
        self.index: ServedIndex | None = None
        self.tasks: list[ServedTask] = []
        self.lanes: dict[str, Lane] = {}
        self._parser = ThreadPoolExecutor(1, "elmore-parse")

    def load(self) -> None:
        """Load the models and start the lanes; this takes seconds."""
        import torch  # noqa: PLC0415  takes seconds

        index = open_index(self.settings.index)  # the quickest to fail
        models = load_models(self.settings)
        self.index = ServedIndex(index, models)
        self.tasks = load_tasks(self.settings)
        num_threads = torch.get_num_threads()

        def start_long() -> None:
            lower_priority(_NICENESS[LONG])
            torch.set_num_threads(max(1, num_threads // 2))  # of this thread

        def warm_up() -> None:
            for model in models:
                model.embedder.embed("Warm up .")

        self.add_lanes(
            models, start_short=partial(lower_priority, _NICENESS[SHORT]), start_long=start_long
        )
        self.lanes[LONG].start()
        torch.set_num_threads(num_threads)  # the long lane has changed it for later threads
        self.lanes[SHORT].start(warm_up)  # also starts the threads that will help this one
        self.phase = Phase.READY

    def add_lanes(
        self,
        models: list[ServedModel],
        *,
        start_short: Callable[[], None] | None = None,
        start_long: Callable[[], None] | None = None,
    ) -> None:
        """Serve these models; the start functions are called in the threads of the lanes."""
        self.models = models
        self.lanes = {
            name: Lane(
                run_works,
                batch_tokens=self.limits.batch_tokens,
                start_thread=start,
                on_batch=partial(self._note_batch, name),
            )
            for name, start in ((SHORT, start_short), (LONG, start_long))
        }

    def close(self) -> None:
        """Stop the threads."""
        self._parser.shutdown(wait=False, cancel_futures=True)
        for lane in self.lanes.values():
            lane.close()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is waiting or being computed."""
        return all(lane.is_idle for lane in self.lanes.values())

    def find_model(self, name: str | None) -> ServedModel:
        """Return the model that a request asks for."""
        return find_model(self.models, name)

    def require_index(self) -> ServedIndex:
        """Return the index; refuse requests while the server starts or stops."""
        self.require_ready()
        assert self.index is not None  # a service that is ready has one
        return self.index

    def require_ready(self) -> None:
        """Refuse requests while the server starts or stops."""
        if self.phase is not Phase.READY:
            raise RequestError(
                503,
                f"the server is {self.phase}; try again later",
                headers={"retry-after": "1", "connection": "close"},
            )

    async def answer(
        self, request: Request, schema: type[_Schema], plan: Callable[[_Schema], Plan]
    ) -> Response:
        """Answer a request: `plan` checks it and says what to compute."""
        self.require_ready()
        body = await receive_body(request, self.admission)
        ticket = self.admission.enter(len(body))
        try:
            planned = await self._plan(body, schema, plan)
            del body
            return await self._compute(request, ticket, planned)
        finally:
            ticket.leave()

    async def answer_query(self, request: Request, planned: Plan) -> Response:
        """Answer a request without a body."""
        self.require_ready()
        ticket = self.admission.enter(0)
        try:
            return await self._compute(request, ticket, planned)
        finally:
            ticket.leave()

    async def _compute(self, request: Request, ticket: Ticket, planned: Plan) -> Response:
        lane = ticket.move(planned.work.num_tokens, lane=planned.lane)
        future = self.lanes[lane].submit(planned.work)
        parts = await self._wait(request, future)
        return PartsResponse(
            parts,
            seconds_per_part=self.limits.receive_seconds,
            media_type=planned.media_type,
            headers=dict(planned.headers),
        )

    async def _plan(
        self, body: bytes, schema: type[_Schema], plan: Callable[[_Schema], Plan]
    ) -> Plan:
        def parse() -> Plan:
            return plan(parse_body(body, schema))

        if len(body) <= MAX_BYTES_PARSED_AT_ONCE:
            return parse()
        return await asyncio.get_running_loop().run_in_executor(self._parser, parse)

    async def _wait(self, request: Request, future: "asyncio.Future[list[bytes]]") -> list[bytes]:
        """Return the result, unless the client leaves first."""
        gone = asyncio.ensure_future(_wait_for_disconnect(request.receive))
        waited: set[asyncio.Future[Any]] = {future, gone}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                raise ClientGoneError
            return future.result()
        finally:
            gone.cancel()
            future.cancel()

    def _note_batch(self, lane: str, report: BatchReport) -> None:
        self.metrics.count_batch(report, lane=lane)
        self.admission.note_speed(lane, num_tokens=report.num_tokens, seconds=report.seconds)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

"""Services and clients for tests, without sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

import elmore
from elmore.serve.app import make_app
from elmore.serve.served_index import ServedIndex
from elmore.serve.served_models import ServedModel
from elmore.serve.served_tasks import ServedTask
from elmore.serve.service import Phase, Service
from elmore.serve.settings import Limits, ServeSettings
from tests import tiny

_embedders: dict[str, elmore.Embedder] = {}


def load_tiny() -> elmore.Embedder:
    """The trained tiny model, loaded once."""
    if "tiny" not in _embedders:
        _embedders["tiny"] = elmore.load(tiny.TRAINED_MODEL)
    return _embedders["tiny"]


def make_service(
    *,
    models: list[ServedModel] | None = None,
    index: elmore.UseIndex | None = None,
    tasks: list[ServedTask] | None = None,
    limits: Limits | None = None,
    **settings: Any,
) -> Service:
    """A service that is ready."""
    service = Service(ServeSettings(limits=limits or Limits(), **settings))
    models = models or [ServedModel("tiny", load_tiny())]
    service.add_lanes(models)
    service.index = ServedIndex(index or elmore.open_index(), models)
    service.tasks = tasks or []
    service.phase = Phase.READY
    return service


def use(
    service: Service,
    talk: Callable[[httpx.AsyncClient], Awaitable[Any]],
    *,
    static_folder: Path | None = None,
) -> Any:
    """Let a client talk to an application; return what it returns."""

    async def run() -> Any:
        app = make_app(service, static_folder=static_folder)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            try:
                return await talk(client)
            finally:
                service.close()

    return asyncio.run(run())


def post(path: str, *, service: Service | None = None, **how: Any) -> httpx.Response:
    """Send one request to a new application."""
    return use(service or make_service(), lambda client: client.post(path, **how))


def get(path: str, *, service: Service | None = None, **how: Any) -> httpx.Response:
    """Send one request to a new application."""
    return use(service or make_service(), lambda client: client.get(path, **how))

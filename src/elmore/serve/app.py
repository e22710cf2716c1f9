"""The web application: routes, error answers and middleware around a service."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

import elmore
from elmore.serve.body import explain
from elmore.serve.errors import ClientGoneError, RequestError, make_error_response
from elmore.serve.guard import CLIENT_GONE, Guard
from elmore.serve.page_files import PageFiles
from elmore.serve.routes import (
    language_models,
    layers,
    openai,
    page_views,
    similar_uses,
    status,
    tei,
    uses,
)
from elmore.serve.service import Service

logger = logging.getLogger(__name__)

ROUTERS = (
    openai.make_router,
    tei.make_router,
    layers.make_router,
    language_models.make_router,
    uses.make_router,
    similar_uses.make_router,
    page_views.make_router,
    status.make_router,
)

# Some versions of FastAPI report requests and errors to wherever the environment says.
_NO_TELEMETRY: Any = dict.fromkeys(
    ("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False
)


def make_app(
    service: Service,
    *,
    routers: Sequence[Callable[[Service], APIRouter]] = ROUTERS,
    static_folder: Path | None = None,
    on_start: Callable[[], Awaitable[None]] | None = None,
) -> FastAPI:
    """Return the application; `static_folder` holds the files of a page served at /."""
    app = FastAPI(
        title="elmore",
        version=elmore.__version__,
        summary="Word vectors in context.",
        docs_url=None,  # FastAPI's pages load from other hosts
        redoc_url=None,
        lifespan=_make_lifespan(service, on_start),
        telemetry=_NO_TELEMETRY,
    )
    for make_router in routers:
        app.include_router(make_router(service))
    if static_folder is not None:
        app.mount("/", PageFiles(directory=static_folder, html=True), name="page")
    app.add_exception_handler(RequestError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid_query)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(Exception, _answer_bug)
    app.add_exception_handler(ClientGoneError, _count_disconnect(service))
    app.add_middleware(Guard, service=service)
    if service.settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(service.settings.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    return app


def _make_lifespan(
    service: Service, on_start: Callable[[], Awaitable[None]] | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        if on_start is not None:
            await on_start()
        yield
        service.close()

    return lifespan


async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return make_error_response(error, path=request.url.path)


async def _answer_invalid_query(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return make_error_response(explain(error, skip=1), path=request.url.path)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    """Answer what no route handles, such as an unknown path."""
    assert isinstance(error, HTTPException)
    message = {
        404: "there is no such route; see /docs",
        405: "this route has another method; see /docs",
    }.get(error.status_code, str(error.detail))
    refusal = RequestError(error.status_code, message, headers=error.headers)
    return make_error_response(refusal, path=request.url.path)


async def _answer_bug(request: Request, _error: Exception) -> Response:
    """Answer an error that nobody foresaw; the traceback is in the server's log."""
    message = "the server failed; its log says why"
    return make_error_response(RequestError(500, message), path=request.url.path)


def _count_disconnect(
    service: Service,
) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def count(_request: Request, _error: Exception) -> Response:
        service.metrics.count_disconnect()
        return Response(status_code=CLIENT_GONE)  # nobody reads it

    return count

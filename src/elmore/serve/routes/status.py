"""Whether the server works, what it serves, what it counted, and its documentation."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

import elmore
from elmore.serve.docs_page import render_docs
from elmore.serve.service import Service

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def make_router(service: Service) -> APIRouter:
    """Return the routes that compute nothing."""
    router = APIRouter(tags=["status"])

    @router.get("/health")
    async def health() -> dict[str, str]:
        """Say that the process answers, even while it starts or stops."""
        return {"status": service.phase}

    @router.get("/ready", responses={503: {"description": "Starting or stopping."}})
    async def ready() -> dict[str, str]:
        """Say whether requests are accepted."""
        service.require_ready()
        return {"status": service.phase}

    @router.get("/info", responses={503: {"description": "Starting or stopping."}})
    async def info() -> dict[str, Any]:
        """Describe the models and the limits."""
        service.require_ready()
        first = service.models[0]
        return {
            "model_id": first.name,
            "model_dtype": str(first.embedder.precision),
            "max_input_length": first.embedder.max_sentence_tokens,
            "max_batch_tokens": service.limits.batch_tokens,
            "version": elmore.__version__,
            "models": [
                {
                    "name": model.name,
                    "num_layers": model.embedder.num_layers,
                    "vector_dim": model.embedder.vector_dim,
                    "layers": str(model.embedder.choose_layers()),
                    "language": str(model.embedder.language),
                    "kernel": model.embedder.kernel,
                    "has_lm_head": model.has_lm_head,
                }
                for model in service.models
            ],
            "index": None if service.index is None else service.index.describe(),
            "tasks": [task.describe() for task in service.tasks],
            "limits": asdict(service.limits),
        }

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Return counters in Prometheus' text format."""
        for name, load in service.admission.loads.items():
            service.metrics.set_queued(load.num_tokens, lane=name)
        return Response(service.metrics.render(), media_type=PROMETHEUS)

    @router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        """Show the routes; the page loads nothing."""
        return HTMLResponse(render_docs(request.app.openapi()))

    return router

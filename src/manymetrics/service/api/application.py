"""The app: routes, errors, guards, and what happens when it starts and stops."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request
from starlette.responses import Response

import manymetrics as mm
from manymetrics.service.api import answering, classifying, documents, operating
from manymetrics.service.api.guards import Guards
from manymetrics.service.api.problems import add_handlers
from manymetrics.service.assembly import Service
from manymetrics.service.idempotency import Replayed
from manymetrics.service.settings import Settings
from manymetrics.service.web import add_pages

ABOUT = "Few-shot text classification for many clients: send a few examples, get a classifier."


def create_app(settings: Settings, *, service: Service | None = None) -> FastAPI:
    """The service over HTTP; `app.state.service` is the service behind it."""
    behind = service or Service(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        behind.start()
        yield
        behind.stop()

    app = FastAPI(
        title="manymetrics", description=ABOUT, version=mm.__version__, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    app.state.service = behind
    for router in (classifying.router, answering.router, operating.public, operating.guarded, documents.router):
        app.include_router(router)
    add_handlers(app)
    _add_replays(app)
    documents.complete_document(app)
    add_pages(app, behind)
    app.add_middleware(Guards, service=behind)
    return app


def _add_replays(app: FastAPI) -> None:
    @app.exception_handler(Replayed)
    async def _replayed(_: Request, found: Replayed) -> Response:
        answered = found.answered
        return Response(answered.body, answered.status, {"Idempotent-Replay": "true"}, "application/json")

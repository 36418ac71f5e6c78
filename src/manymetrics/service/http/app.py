"""The app: routes, errors, limits, start and stop, and the OpenAPI document."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request
from starlette.responses import Response

import manymetrics as mm
from manymetrics.service.domain.service import Service
from manymetrics.service.http import classifiers, operations
from manymetrics.service.http.errors import add_handlers
from manymetrics.service.http.middleware import LimitsMiddleware
from manymetrics.service.settings import Settings
from manymetrics.service.web import add_pages
from manymetrics.service.web.pages import page

ABOUT = "Few-shot text classification for many clients: send a few examples, get a classifier."


def create_app(settings: Settings) -> FastAPI:
    """The service over HTTP; `app.state.service` is the service behind it."""
    service = Service(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    app = FastAPI(
        title="manymetrics", description=ABOUT, version=mm.__version__, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    app.state.service = service
    for router in (classifiers.router, operations.public, operations.guarded):
        app.include_router(router)
    app.add_api_route("/docs", documentation, include_in_schema=False)
    add_handlers(app)
    add_pages(app)
    app.add_middleware(LimitsMiddleware, service=service)
    return app


async def documentation(request: Request) -> Response:
    """Every route, as a page that needs no network."""
    return page("docs.html", paths=request.app.openapi()["paths"])

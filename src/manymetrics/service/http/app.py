"""The app: routes, errors, limits, start and stop, and the OpenAPI document."""

import contextlib
import html
from collections.abc import AsyncIterator

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse

import manymetrics as mm
from manymetrics.service.domain.service import Service
from manymetrics.service.http import classifiers, operations, predictions
from manymetrics.service.http.errors import add_handlers
from manymetrics.service.http.middleware import LimitsMiddleware
from manymetrics.service.settings import Settings
from manymetrics.service.web import add_pages

ABOUT = "Few-shot text classification for many clients: send a few examples, get a classifier."
documents = APIRouter(include_in_schema=False)


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
    for router in (classifiers.router, predictions.router, operations.public, operations.guarded, documents):
        app.include_router(router)
    add_handlers(app)
    add_pages(app)
    app.add_middleware(LimitsMiddleware, service=service)
    return app


@documents.get("/docs")
async def documentation(request: Request) -> HTMLResponse:
    """Every route, as a plain page that needs no script and no network."""
    document = request.app.openapi()
    rows = [
        f"<tr><td><code>{method.upper()}</code></td><td><code>{html.escape(path)}</code></td>"
        f"<td>{html.escape(operation.get('description', ''))}</td></tr>"
        for path, operations_of_path in document["paths"].items()
        for method, operation in operations_of_path.items()
    ]
    title = html.escape(document["info"]["title"])
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><h1>{title}</h1>"
        "<p>Send a key with every request: <code>Authorization: Bearer KEY</code>. Bodies and responses are JSON; the "
        "complete document is <a href=openapi.json>openapi.json</a>.</p>"
        f"<table><tr><th>method<th>address<th>what it does</tr>{''.join(rows)}</table></html>"
    )

"""The app: routes of the service itself, errors, limits, start and stop, and the page about the routes."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import APIRouter, FastAPI, Request
from prometheus_client import generate_latest
from starlette.responses import PlainTextResponse, Response

import manymetrics as mm
from manymetrics.service.domain.errors import Unavailable
from manymetrics.service.domain.schemas import Page
from manymetrics.service.domain.service import Service
from manymetrics.service.domain.shared_tasks import SharedTask
from manymetrics.service.http import classifiers
from manymetrics.service.http.auth import KeyRoute, Operator
from manymetrics.service.http.classifiers import Cursor, Limit
from manymetrics.service.http.errors import add_handlers, documented
from manymetrics.service.http.middleware import LimitsMiddleware
from manymetrics.service.settings import Settings
from manymetrics.service.web import classifiers as classifier_pages
from manymetrics.service.web import session
from manymetrics.service.web.pages import page
from manymetrics.service.web.pages import router as assets

ABOUT = "Few-shot text classification for many clients: send a few examples, get a classifier."
public = APIRouter(tags=["service"])  # the only routes without a key
guarded = APIRouter(tags=["service"], route_class=KeyRoute, responses=documented(401, 403, 429, 503))


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
    for router in (classifiers.router, public, guarded, assets, session.router, classifier_pages.router):
        app.include_router(router)
    add_handlers(app)
    app.add_middleware(LimitsMiddleware, service=service)
    return app


@public.get("/health")
async def health() -> dict[str, str]:
    """Whether the process is alive; asks nobody else."""
    return {"status": "ok", "version": mm.__version__}


@public.get("/ready", responses=documented(503))
def ready(request: Request) -> dict[str, str]:
    """Whether requests can be answered: the database is migrated and a model is loaded."""
    service: Service = request.app.state.service
    if not service.database.is_migrated() or not service.models.live():
        raise Unavailable("The database is of another version. Start the service again.", retry_after=5)
    return {"status": "ready", "version": mm.__version__}


@public.get("/docs", include_in_schema=False)
async def documentation(request: Request) -> Response:
    """Every route, as a page that needs no network."""
    return page("docs.html", paths=request.app.openapi()["paths"])


@guarded.get("/metrics", response_class=PlainTextResponse)
def metrics(call: Operator) -> Response:
    """Counts and times for Prometheus; a key with the scope `operate` opens it."""
    content = generate_latest(call.service.measures.registry)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


@guarded.get("/v1/shared-tasks", responses=documented(422))
def shared_tasks(call: Operator, limit: Limit = 50, cursor: Cursor = None) -> Page[SharedTask]:
    """The labelled examples that clients opted in to share, without their names; to learn the next model from."""
    return call.service.classifiers.shared_tasks(limit=limit, after=cursor)

"""Routes of the service itself: health, readiness, metrics, shared tasks."""

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

import manymetrics as mm
from manymetrics.service.domain.errors import Unavailable
from manymetrics.service.domain.shared_tasks import SharedTask
from manymetrics.service.http.auth import KeyRoute, Operator, TheService
from manymetrics.service.http.bodies import Cursor, Limit, Page
from manymetrics.service.http.errors import documented

public = APIRouter(tags=["service"])  # the only routes without a key
guarded = APIRouter(tags=["service"], route_class=KeyRoute, responses=documented(401, 403, 429, 503))


class State(BaseModel):
    """The state of the service."""

    status: str
    version: str


@public.get("/health")
async def health() -> State:
    """Whether the process is alive; asks nobody else."""
    return State(status="ok", version=mm.__version__)


@public.get("/ready", responses=documented(503))
def ready(service: TheService) -> State:
    """Whether requests can be answered: the database is migrated and a model is loaded."""
    if not service.is_ready():
        raise Unavailable("The database is of another version. Start the service again.", retry_after=5)
    return State(status="ready", version=mm.__version__)


@guarded.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
def metrics(caller: Operator, service: TheService) -> Response:
    """Counts and times for Prometheus; a key with the scope `operate` opens it."""
    return Response(service.measured(), media_type="text/plain; version=0.0.4; charset=utf-8")


@guarded.get("/v1/shared-tasks", responses=documented(422))
def shared_tasks(caller: Operator, service: TheService, limit: Limit = 50, cursor: Cursor = None) -> Page[SharedTask]:
    """The labelled examples that clients opted in to share, without their names; to learn the next model from."""
    tasks = service.classifiers.shared_tasks(limit=limit + 1, after=cursor)
    return Page.of(tasks, limit)

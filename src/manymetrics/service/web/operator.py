"""The page of the operator: load, errors, the slowest tenants, and the tasks of the live model."""

import base64
from functools import lru_cache
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

import manymetrics as mm
from manymetrics.service.domain.errors import RequestError
from manymetrics.service.domain.service import Service
from manymetrics.service.web.pages import PageRoute, page
from manymetrics.service.web.session import Operator

router = APIRouter(include_in_schema=False, route_class=PageRoute)
MAX_ROWS = 20  # per table


@router.get("/operator")
async def show_operation(visit: Operator) -> Response:
    """The state of the process and its model."""
    values = await run_in_threadpool(lambda: {**_load(visit.service), **_model(visit.service)})
    return page("operator.html", visit=visit, **values)


def _load(service: Service) -> dict[str, Any]:
    """Load in total, of the slowest tenants, and of the most requested routes."""
    names = {tenant.id: tenant.name for tenant in service.tenants.list()}
    tenants = [(names.get(tenant, "deleted"), load) for tenant, load in list(service.measures.tenants.items())]
    routes = dict(service.measures.routes)
    totals = {name: sum(getattr(load, name) for load in routes.values()) for name in ("requests", "errors", "refused")}
    totals |= {"waiting": len(service.answers) + len(service.work), "classifiers in memory": len(service.cache)}
    return {
        "totals": {**totals, "tenants": len(names)},
        "slowest": sorted(tenants, key=lambda row: row[1].mean, reverse=True)[:MAX_ROWS],
        "routes": sorted(routes.items(), key=lambda row: row[1].requests, reverse=True)[:MAX_ROWS],
    }


def _model(service: Service) -> dict[str, Any]:
    """The clusters and the parts of the live model; None if there is none, or its origin cannot be read."""
    try:
        live = service.models.live()
        clusters = [sorted(tasks) for tasks in live.clusters]
        heat_map = _heat_map(service.models.path(live.fingerprint), live.fingerprint)
        return {"model": service.models.describe(), "clusters": clusters, "heat_map": heat_map}
    except (RequestError, mm.ManyMetricsError):
        return {"model": None}


@lru_cache(maxsize=2)
def _heat_map(path: str, _fingerprint: str) -> str:
    """The similarity of each pair of tasks of a model, as an image in a data URI."""
    return "data:image/svg+xml;base64," + base64.b64encode(mm.draw_similarity(path)).decode()

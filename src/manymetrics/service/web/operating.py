"""The operator's page: the task map of the live model, load, errors, and the slowest tenants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

import manymetrics as mm
from manymetrics.service.assembly import Service
from manymetrics.service.problems import Problem
from manymetrics.service.web.access import Operator, PageRoute
from manymetrics.service.web.pictures import TaskMap, task_map
from manymetrics.service.web.rendering import page

router = APIRouter(include_in_schema=False, route_class=PageRoute)
MOST_ROWS = 20


@dataclass
class RouteLoad:
    """What was asked of one address since the process started."""

    route: str
    requests: int = 0
    errors: int = 0  # statuses from 500 up
    refused: int = 0  # status 429
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        """Seconds of one request."""
        return self.seconds / self.requests if self.requests else 0.0


@dataclass(frozen=True)
class TenantLoad:
    """What one tenant asked for since the process started."""

    name: str
    requests: int
    errors: int
    refused: int
    mean: float
    slowest: float


@router.get("/operator")
async def show_operation(visit: Operator) -> Response:
    """How the process and its model are."""
    return page("operator.html", visit=visit, **await run_in_threadpool(_gathered, visit.service))


def _gathered(service: Service) -> dict[str, Any]:
    loads = _routes(service)
    tenants = _tenants(service)
    picture, about = _model(service)
    return {
        "requests": sum(one.requests for one in loads), "errors": sum(one.errors for one in loads),
        "refused": sum(one.refused for one in loads), "waiting": len(service.answers) + len(service.work),
        "cached": len(service.cache), "tenants": len(service.tenants.list()), "map": picture, "model": about,
        "slowest": sorted(tenants, key=lambda one: -one.mean)[:MOST_ROWS],
        "routes": sorted(loads, key=lambda one: -one.requests)[:MOST_ROWS],
    }  # fmt: skip


def _routes(service: Service) -> Sequence[RouteLoad]:
    found: defaultdict[str, RouteLoad] = defaultdict(lambda: RouteLoad(""))
    for family in service.measures.registry.collect():
        for sample in family.samples:
            load = found[sample.labels.get("route", "")]
            if sample.name == "manymetrics_requests_total":
                load.requests += int(sample.value)
                load.errors += int(sample.value) if sample.labels["status"] >= "500" else 0
                load.refused += int(sample.value) if sample.labels["status"] == "429" else 0
            elif sample.name == "manymetrics_request_seconds_sum":
                load.seconds += sample.value
    for route, load in found.items():
        load.route = route
    return [load for load in found.values() if load.requests]


def _tenants(service: Service) -> Sequence[TenantLoad]:
    names = {tenant.id: tenant.name for tenant in service.tenants.list()}
    return [
        TenantLoad(names.get(tenant, "deleted"), load.requests, load.errors, load.refused,
                   load.seconds / max(load.requests, 1), load.slowest)
        for tenant, load in list(service.measures.tenants.items())
    ]  # fmt: skip


def _model(service: Service) -> tuple[TaskMap | None, Any]:
    """The task map, and what the model is made of; nothing where no model is live or its origin cannot be read."""
    try:
        return task_map(service.models.live()), service.models.describe()
    except (Problem, mm.ManyMetricsError):
        return None, None

"""The versions of a classifier, going back to one, its settings, and its end."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from manymetrics.service.idempotency import Replayed
from manymetrics.service.problems import Invalid
from manymetrics.service.web.access import ClassifierId, PageRoute, Reader, Writer, see
from manymetrics.service.web.listing import Done
from manymetrics.service.web.pictures import history
from manymetrics.service.web.rendering import page

router = APIRouter(include_in_schema=False, route_class=PageRoute)
MOST_VERSIONS = 100  # in the table
REASONS = {
    "created": "created",
    "examples": "examples changed",
    "settings": "settings changed",
    "model": "another model",
    "rollback": "rolled back",
}


@router.get("/classifiers/{classifier_id}/versions")
async def show_versions(visit: Reader, classifier_id: ClassifierId, done: Done = None) -> Response:
    """The versions, their estimated accuracy as a line."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    versions = await visit.read(visit.service.classifiers.versions, classifier_id)
    return page(
        "versions.html", visit=visit, done=done, info=info, picture=history(versions), reasons=REASONS,
        versions=list(reversed(versions))[:MOST_VERSIONS], count=len(versions),
    )  # fmt: skip


@router.post("/classifiers/{classifier_id}/versions")
async def roll_back(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Go back to an earlier version."""
    version = int(min(max(visit.number("version", 0), 0), 10**9))
    request = visit.once("roll back", classifier_id, version)

    def act() -> None:
        try:
            visit.service.classifiers.roll_back(visit.caller, classifier_id, version, request=request)
        except Replayed:
            return

    await visit.work(act)
    return see(f"/classifiers/{classifier_id}/versions?done=rolled-back")


@router.get("/classifiers/{classifier_id}/settings")
async def show_settings(visit: Reader, classifier_id: ClassifierId, done: Done = None) -> Response:
    """Name, when to reject, sharing, and deletion."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return page("settings.html", visit=visit, done=done, info=info)


@router.post("/classifiers/{classifier_id}/settings")
async def change_settings(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Change what differs."""
    classifiers = visit.service.classifiers
    info = await visit.read(classifiers.get, classifier_id)
    name, shared = visit.text("name").strip(), bool(visit.text("shared"))
    wanted = {"reject": visit.number("reject", 0) / 100, "margin": visit.number("margin", 0) / 100}
    if not all(0 <= share <= 1 for share in wanted.values()):
        raise Invalid("A threshold is not between 0 and 100 %. Go back and mend it.")
    changed: dict[str, Any] = {key: share for key, share in wanted.items() if abs(share - getattr(info, key)) > 1e-9}
    await visit.work(lambda: classifiers.update(visit.caller, classifier_id, name=name, shared=shared, **changed))
    return see(f"/classifiers/{classifier_id}/settings?done=saved")


@router.post("/classifiers/{classifier_id}/delete")
async def delete_classifier(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Delete a classifier, where that was confirmed."""
    if not visit.text("sure"):
        raise Invalid("The deletion was not confirmed. Go back, tick the box, then send the form again.")
    await visit.work(lambda: visit.service.classifiers.delete(visit.caller, classifier_id))
    return see("/classifiers?done=deleted")

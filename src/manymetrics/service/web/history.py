"""The versions of a classifier, rolling back to one of them, its settings, and its deletion."""

from fastapi import APIRouter
from starlette.responses import Response

from manymetrics.service.domain.errors import Invalid
from manymetrics.service.web.pages import ClassifierId, Done, PageRoute, page, redirect
from manymetrics.service.web.session import Reader, Writer

router = APIRouter(include_in_schema=False, route_class=PageRoute)
MAX_ROWS = 100  # versions in the table
MAX_POINTS = 120  # versions in the chart


@router.get("/classifiers/{classifier_id}/versions")
async def show_versions(visit: Reader, classifier_id: ClassifierId, done: Done = None) -> Response:
    """The versions and a chart of their estimated accuracy."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    versions = await visit.read(visit.service.classifiers.versions, classifier_id)
    return page(
        "versions.html",
        visit=visit,
        done=done,
        info=info,
        versions=list(reversed(versions))[:MAX_ROWS],
        count=len(versions),
        estimated=[version for version in versions if version.estimate is not None][-MAX_POINTS:],
    )


@router.post("/classifiers/{classifier_id}/versions")
async def roll_back(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Make an earlier version the latest one."""
    version = int(min(max(visit.number("version", 0), 0), 10**9))
    await visit.change(visit.service.classifiers.roll_back, classifier_id, version)
    return redirect(f"/classifiers/{classifier_id}/versions?done=rolled-back")


@router.get("/classifiers/{classifier_id}/settings")
async def show_settings(visit: Reader, classifier_id: ClassifierId, done: Done = None) -> Response:
    """Name, rejection, sharing, and deletion."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return page("settings.html", visit=visit, done=done, info=info)


@router.post("/classifiers/{classifier_id}/settings")
async def change_settings(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Apply the settings that differ, unless the classifier has changed since the page was opened."""
    classifiers = visit.service.classifiers
    info = await visit.read(classifiers.get, classifier_id)
    thresholds = {name: visit.number(name, 0) / 100 for name in ("reject", "margin")}
    if not all(0 <= threshold <= 1 for threshold in thresholds.values()):
        raise Invalid("A threshold must be between 0 and 100 %. Go back and correct it.")
    changed = {name: value for name, value in thresholds.items() if abs(value - getattr(info, name)) > 1e-9}
    values = {"name": visit.text("name").strip(), "shared": bool(visit.text("shared")), **changed}
    await visit.change(classifiers.update, classifier_id, values=values, if_tag=visit.text("tag"))
    return redirect(f"/classifiers/{classifier_id}/settings?done=saved")


@router.post("/classifiers/{classifier_id}/delete")
async def delete_classifier(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Delete a classifier, if the form confirms it."""
    if not visit.text("sure"):
        raise Invalid("The deletion was not confirmed. Go back, tick the box, then send the form again.")
    await visit.work(visit.service.classifiers.delete, classifier_id)
    return redirect("/classifiers?done=deleted")

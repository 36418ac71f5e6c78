"""What is wrong with the examples of a classifier, which texts to label next, its versions and its settings."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from manymetrics.service.domain.errors import Invalid, RequestError
from manymetrics.service.domain.schemas import ClassifierInfo, Labelled
from manymetrics.service.web.classifiers import all_examples, ids_by_example
from manymetrics.service.web.pages import PAGES, ClassifierId, Done, page, redirect
from manymetrics.service.web.session import Reader, Visit, Writer
from manymetrics.service.web.uploads import read_upload

router = APIRouter(include_in_schema=False, tags=[PAGES])
MAX_SUGGESTIONS = 50
MAX_VERSIONS = 100  # shown
EMPTY: dict[str, Any] = {"suggestions": [], "added": 0, "earlier": None, "count": 5}  # before any suggestion


@router.get("/classifiers/{classifier_id}/check")
async def show_findings(visit: Reader, classifier_id: ClassifierId, done: Done = None) -> Response:
    """The estimated accuracy, and problems in the examples."""
    return await _findings(visit, classifier_id, done=done)


@router.post("/classifiers/{classifier_id}/check")
async def evaluate(visit: Reader, classifier_id: ClassifierId) -> Response:
    """The same, with the result on a labelled test set."""
    try:
        upload = await visit.run(lambda: read_upload(visit.form))
        return await _findings(visit, classifier_id, test=upload.examples)
    except Invalid as error:
        return await _findings(visit, classifier_id, error=error)


async def _findings(visit: Visit, classifier_id: str, *, test: Sequence[Labelled] = (), **shown: Any) -> Response:
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    findings = await visit.work(visit.service.answering.evaluate, classifier_id, test)
    examples = await all_examples(visit, classifier_id)
    folded = [replace(example, text=" ".join(example.text.lower().split())) for example in examples]
    example_ids = ids_by_example(folded) | ids_by_example(examples)  # findings on several examples fold their texts
    values = {"findings": findings, "example_ids": example_ids, **shown}
    return page("check.html", visit=visit, info=info, **values)


@router.get("/classifiers/{classifier_id}/suggestions")
async def ask_for_texts(visit: Reader, classifier_id: ClassifierId) -> Response:
    """The form for texts without labels."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return page("suggest.html", visit=visit, info=info, texts=(), **EMPTY)


@router.post("/classifiers/{classifier_id}/suggestions")
async def suggest(visit: Reader, classifier_id: ClassifierId) -> Response:
    """The texts to label next."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return await _suggest(visit, info, _lines(visit))


@router.post("/classifiers/{classifier_id}/labels")
async def label_texts(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Add the texts that got labels, then suggest some of the remaining ones."""
    classifiers, examples, texts = visit.service.classifiers, _labelled(visit), _lines(visit)
    info = await visit.read(classifiers.get, classifier_id)
    if not examples:
        error = Invalid("No text has a label yet. Label at least one, or mark it as a counter-example.")
        return await _suggest(visit, info, texts, error=error)
    try:
        await visit.change(classifiers.change_examples, classifier_id, add=examples)
    except RequestError as problem:
        return await _suggest(visit, info, texts, error=problem)
    labelled = {example.text for example in examples}
    remaining = [text for text in texts if text not in labelled]
    changed = await visit.read(classifiers.get, classifier_id)
    return await _suggest(visit, changed, remaining, added=len(examples), earlier=info.estimate)


def _lines(visit: Visit) -> list[str]:
    """The texts of the form, one per line, without blank lines and repetitions."""
    return list(dict.fromkeys(line.strip() for line in visit.text("texts").splitlines() if line.strip()))


def _labelled(visit: Visit) -> list[Labelled]:
    examples = []
    for number in range(MAX_SUGGESTIONS):
        text, label = visit.text(f"text-{number}"), visit.text(f"label-{number}").strip()
        counter_example = bool(visit.text(f"none-{number}"))
        if text and (label or counter_example):
            examples.append(Labelled(text, None if counter_example else label))
    return examples


async def _suggest(visit: Visit, info: ClassifierInfo, texts: Sequence[str], **shown: Any) -> Response:
    values = {**EMPTY, **shown}
    if texts or not values["added"]:
        try:
            values["count"] = int(min(max(visit.number("count", EMPTY["count"]), 1), MAX_SUGGESTIONS))
            ask = visit.service.answering.suggest
            values["suggestions"] = await visit.work(ask, info.id, texts, count=values["count"])
        except RequestError as problem:
            values = {**EMPTY, "error": problem}
    return page("suggest.html", visit=visit, info=info, texts=texts, **values)


@router.get("/classifiers/{classifier_id}/versions")
async def show_versions(visit: Reader, classifier_id: ClassifierId, done: Done = None) -> Response:
    """The versions with their estimated accuracy, the latest first."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    versions = await visit.read(visit.service.classifiers.versions, classifier_id)
    latest = list(reversed(versions))[:MAX_VERSIONS]
    return page("versions.html", visit=visit, done=done, info=info, versions=latest, count=len(versions))


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

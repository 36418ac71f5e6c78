"""The pages of classifiers: list, create, try a text, examples, findings, suggestions, versions, settings."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from manymetrics.service.domain.errors import Invalid, NotFound, RequestError
from manymetrics.service.domain.schemas import ClassifierInfo, Labelled
from manymetrics.service.web.pages import PAGES, ClassifierId, Cursor, page, redirect
from manymetrics.service.web.session import Reader, Visit, Writer
from manymetrics.service.web.uploads import read_upload

router = APIRouter(include_in_schema=False, tags=[PAGES])
PAGE_SIZE = 50
NEAREST = 5  # examples shown with an answer
MAX_SUGGESTIONS = 50
MAX_VERSIONS = 100  # shown
NO_SUGGESTIONS: dict[str, Any] = {"suggestions": [], "added": 0, "earlier": None, "count": 5}
SkippedRows = Annotated[int, Query(ge=0, le=10**9)]


@router.get("/classifiers")
async def show_classifiers(visit: Reader, after: Cursor = None) -> Response:
    """The classifiers of a tenant, in pages."""
    listed = await visit.read(visit.service.classifiers.list, limit=PAGE_SIZE, after=after)
    return page("list.html", visit=visit, after=after, rows=listed.items, following=listed.next)


@router.get("/classifiers/new")
async def ask_for_examples(visit: Writer) -> Response:
    """The form for a new classifier."""
    return _new(visit)


@router.post("/classifiers")
async def create_classifier(visit: Writer) -> Response:
    """Create a classifier from pasted or uploaded examples."""
    name = visit.text("name").strip()
    try:
        upload = await visit.run(lambda: read_upload(visit.form))
        created = await visit.change(visit.service.classifiers.create, name=name, examples=upload.examples)
    except RequestError as error:
        return _new(visit, error)
    skipped = f"&skipped={upload.skipped}" if upload.skipped else ""
    return redirect(f"/classifiers/{created}?done=created{skipped}")


def _new(visit: Visit, error: RequestError | None = None) -> Response:
    return page("new.html", visit=visit, error=error, max_bytes=visit.service.settings.most_body_bytes)


@router.get("/classifiers/{classifier_id}")
async def show_classifier(visit: Reader, classifier_id: ClassifierId, skipped: SkippedRows = 0) -> Response:
    """A classifier, and a field for a text to try."""
    info = await visit.info(classifier_id)
    return page("try.html", visit=visit, info=info, text="", prediction=None, skipped=skipped)


@router.post("/classifiers/{classifier_id}/try")
async def try_text(visit: Reader, classifier_id: ClassifierId) -> Response:
    """Classify a text and explain the answer."""
    return await _show_answer(visit, classifier_id, visit.text("text"))


async def _show_answer(visit: Visit, classifier_id: str, text: str, **shown: Any) -> Response:
    """The page with the answer for a text and the one `earlier`, or with the reason why there is none."""
    info = await visit.info(classifier_id)
    values = {"prediction": None, "earlier": None, "skipped": 0, **shown}
    try:
        values["prediction"] = await visit.work(visit.service.answering.predict, classifier_id, text, nearest=NEAREST)
        values["explanation"] = await visit.work(visit.service.answering.explain, classifier_id, text)
        values["example_ids"] = await _ids_by_example(visit, classifier_id)
    except RequestError as problem:
        values |= {"prediction": None, "error": shown.get("error") or problem}
    return page("try.html", visit=visit, info=info, text=text, **values)


async def _ids_by_example(visit: Visit, classifier_id: str) -> dict[tuple[str, str | None], str]:
    """The id of each text and label, of duplicates the first."""
    state = await visit.read(visit.service.classifiers.state, classifier_id)
    return {(row.text, row.label): row.id for row in reversed(state.rows)}


@router.get("/classifiers/{classifier_id}/examples")
async def show_examples(visit: Reader, classifier_id: ClassifierId, after: Cursor = None) -> Response:
    """The examples of a classifier, in pages."""
    info = await visit.info(classifier_id)
    listed = await visit.read(visit.service.classifiers.examples, classifier_id, limit=PAGE_SIZE, after=after)
    return page("examples.html", visit=visit, info=info, after=after, rows=listed.items, following=listed.next)


@router.post("/classifiers/{classifier_id}/more")
async def add_upload(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Add pasted or uploaded examples."""
    upload = await visit.run(lambda: read_upload(visit.form))
    await visit.change(visit.service.classifiers.change_examples, classifier_id, add=upload.examples)
    return redirect(f"/classifiers/{classifier_id}/examples?done=added")


@router.post("/classifiers/{classifier_id}/examples")
async def change_example(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Add, edit or remove one example; if it was done while trying a text, show the new answer beside the earlier."""
    text = visit.text("tried")
    if not text:
        done = await _change(visit, classifier_id)
        target = "check" if visit.text("back") == "check" else "examples"
        return redirect(f"/classifiers/{classifier_id}/{target}?done={done}")
    earlier = await visit.work(visit.service.answering.predict, classifier_id, text)
    try:
        done = await _change(visit, classifier_id)
    except RequestError as error:
        return await _show_answer(visit, classifier_id, text, error=error)
    return await _show_answer(visit, classifier_id, text, earlier=earlier, done=done)


async def _change(visit: Visit, classifier_id: str) -> str:
    """Apply the form of one example; returns the value of `done` for the next page."""
    change, example_id = visit.service.classifiers.change_examples, visit.text("example")
    if visit.text("act") == "remove":
        await visit.change(change, classifier_id, remove=[example_id])
        return "removed"
    label = None if visit.text("none") else visit.text("label").strip()
    if label == "":
        raise Invalid("The label is missing. Enter one, or mark the text as a counter-example.")
    example = Labelled(visit.text("text"), label)
    if not example_id:
        await visit.change(change, classifier_id, add=[example])
        return "added"
    rows = (await visit.read(visit.service.classifiers.state, classifier_id)).rows
    stored = next((Labelled(row.text, row.label) for row in rows if row.id == example_id), None)
    if stored is None:
        raise NotFound("This example no longer exists. It may have been changed elsewhere; open the page again.")
    if stored.text.replace("\r\n", "\n") == example.text:  # browsers change how lines end
        example = replace(example, text=stored.text)
    if example != stored:
        await visit.change(change, classifier_id, add=[example], remove=[example_id])
    return "corrected"


@router.get("/classifiers/{classifier_id}/check")
async def show_findings(visit: Reader, classifier_id: ClassifierId) -> Response:
    """The estimated accuracy, and problems in the examples."""
    return await _findings(visit, classifier_id)


@router.post("/classifiers/{classifier_id}/check")
async def evaluate(visit: Reader, classifier_id: ClassifierId) -> Response:
    """The same, with the result on a labelled test set."""
    try:
        upload = await visit.run(lambda: read_upload(visit.form))
        return await _findings(visit, classifier_id, test=upload.examples)
    except Invalid as error:
        return await _findings(visit, classifier_id, error=error)


async def _findings(visit: Visit, classifier_id: str, *, test: Sequence[Labelled] = (), **shown: Any) -> Response:
    info = await visit.info(classifier_id)
    findings = await visit.work(visit.service.answering.evaluate, classifier_id, test)
    ids = await _ids_by_example(visit, classifier_id)
    folded = {(" ".join(text.lower().split()), label): example_id for (text, label), example_id in ids.items()}
    ids = folded | ids  # findings on several examples fold their texts
    return page("check.html", visit=visit, info=info, findings=findings, example_ids=ids, **shown)


@router.get("/classifiers/{classifier_id}/suggestions")
async def ask_for_texts(visit: Reader, classifier_id: ClassifierId) -> Response:
    """The form for texts without labels."""
    return page("suggest.html", visit=visit, info=await visit.info(classifier_id), texts=(), **NO_SUGGESTIONS)


@router.post("/classifiers/{classifier_id}/suggestions")
async def suggest(visit: Reader, classifier_id: ClassifierId) -> Response:
    """The texts to label next."""
    return await _suggest(visit, await visit.info(classifier_id), _lines(visit))


@router.post("/classifiers/{classifier_id}/labels")
async def label_texts(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Add the texts that got labels, then suggest some of the remaining ones."""
    examples, texts = _labelled(visit), _lines(visit)
    info = await visit.info(classifier_id)
    try:
        if not examples:
            raise Invalid("No text has a label yet. Label at least one, or mark it as a counter-example.")
        await visit.change(visit.service.classifiers.change_examples, classifier_id, add=examples)
    except RequestError as error:
        return await _suggest(visit, info, texts, error=error)
    labelled = {example.text for example in examples}
    remaining = [text for text in texts if text not in labelled]
    return await _suggest(visit, await visit.info(classifier_id), remaining, added=len(examples), earlier=info.estimate)


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
    values = {**NO_SUGGESTIONS, **shown}
    try:
        values["count"] = int(min(max(visit.number("count", values["count"]), 1), MAX_SUGGESTIONS))
        ask = visit.service.answering.suggest
        values["suggestions"] = await visit.work(ask, info.id, texts, count=values["count"])
    except RequestError as problem:
        values = {**NO_SUGGESTIONS, "error": problem}
    return page("suggest.html", visit=visit, info=info, texts=texts, **values)


@router.get("/classifiers/{classifier_id}/versions")
async def show_versions(visit: Reader, classifier_id: ClassifierId) -> Response:
    """The versions with their estimated accuracy, the latest first."""
    info = await visit.info(classifier_id)
    versions = await visit.read(visit.service.classifiers.versions, classifier_id)
    latest = list(reversed(versions))[:MAX_VERSIONS]
    return page("versions.html", visit=visit, info=info, versions=latest, count=len(versions))


@router.post("/classifiers/{classifier_id}/versions")
async def roll_back(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Make an earlier version the latest one."""
    version = int(min(max(visit.number("version", 0), 0), 10**9))
    await visit.change(visit.service.classifiers.roll_back, classifier_id, version)
    return redirect(f"/classifiers/{classifier_id}/versions?done=rolled-back")


@router.get("/classifiers/{classifier_id}/settings")
async def show_settings(visit: Reader, classifier_id: ClassifierId) -> Response:
    """Name, rejection, sharing, and deletion."""
    return page("settings.html", visit=visit, info=await visit.info(classifier_id))


@router.post("/classifiers/{classifier_id}/settings")
async def change_settings(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Apply the settings that differ, unless the classifier has changed since the page was opened."""
    info = await visit.info(classifier_id)
    thresholds = {name: visit.number(name, 0) / 100 for name in ("reject", "margin")}
    if not all(0 <= threshold <= 1 for threshold in thresholds.values()):
        raise Invalid("A threshold must be between 0 and 100 %. Go back and correct it.")
    changed = {name: value for name, value in thresholds.items() if abs(value - getattr(info, name)) > 1e-9}
    values = {"name": visit.text("name").strip(), "shared": bool(visit.text("shared")), **changed}
    await visit.change(visit.service.classifiers.update, classifier_id, values=values, if_tag=visit.text("tag"))
    return redirect(f"/classifiers/{classifier_id}/settings?done=saved")


@router.post("/classifiers/{classifier_id}/delete")
async def delete_classifier(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Delete a classifier, if the form confirms it."""
    if not visit.text("sure"):
        raise Invalid("The deletion was not confirmed. Go back, tick the box, then send the form again.")
    await visit.work(visit.service.classifiers.delete, classifier_id)
    return redirect("/classifiers?done=deleted")

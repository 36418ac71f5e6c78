"""The list of classifiers, creating one, and editing its examples."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

import manymetrics as mm
from manymetrics.service.domain.errors import Invalid, NotFound, RequestError
from manymetrics.service.domain.schemas import Labelled
from manymetrics.service.web.pages import ClassifierId, Cursor, Done, PageRoute, page, redirect
from manymetrics.service.web.session import Reader, Visit, Writer
from manymetrics.service.web.try_text import all_examples, predict, show_answer
from manymetrics.service.web.uploads import Upload, read_upload

router = APIRouter(include_in_schema=False, route_class=PageRoute)
PAGE_SIZE = 50
RETURN_PAGES = ("examples", "check")  # pages of a classifier that have forms for one example


@cache
def samples() -> dict[str, list[Labelled]]:
    """Generated examples to start from, by the name of their task."""
    bank = mm.sample_bank(tasks=16)
    targets = [task for task in bank if bank.role(task.name) == "target"]
    return {
        task.name: [Labelled(*row) for row in zip(task.train.texts, task.train.labels, strict=True)] for task in targets
    }


@router.get("/classifiers")
async def show_classifiers(visit: Reader, after: Cursor = None, done: Done = None) -> Response:
    """The classifiers of a tenant, in pages."""
    rows = await visit.read(visit.service.classifiers.list, limit=PAGE_SIZE + 1, after=after)
    return page("list.html", visit=visit, done=done, after=after, **_first_page(rows))


@router.get("/classifiers/new")
async def ask_for_examples(visit: Writer) -> Response:
    """The form for a new classifier."""
    return await _new(visit)


@router.post("/classifiers")
async def create_classifier(visit: Writer) -> Response:
    """Create a classifier from pasted or uploaded examples, or from a sample."""
    name = visit.text("name").strip() or visit.text("sample")
    try:
        upload = await visit.run(lambda: _examples_for(visit))
        created = await visit.change(visit.service.classifiers.create, name=name, examples=upload.examples)
    except RequestError as error:
        return await _new(visit, error)
    skipped = f"&skipped={upload.skipped}" if upload.skipped else ""
    return redirect(f"/classifiers/{created}?done=created{skipped}")


def _examples_for(visit: Visit) -> Upload:
    sample = visit.text("sample")
    if not sample:
        return read_upload(visit.form)
    if sample not in samples():
        raise Invalid("There is no such sample. Choose one of the list.")
    return Upload(samples()[sample])


async def _new(visit: Visit, error: RequestError | None = None) -> Response:
    max_bytes = visit.service.settings.most_body_bytes
    choices = await run_in_threadpool(samples)
    return page("new.html", visit=visit, error=error, samples=choices, max_bytes=max_bytes)


@router.get("/classifiers/{classifier_id}/examples")
async def show_examples(
    visit: Reader, classifier_id: ClassifierId, after: Cursor = None, done: Done = None
) -> Response:
    """The examples of a classifier, in pages."""
    classifiers = visit.service.classifiers
    info = await visit.read(classifiers.get, classifier_id)
    rows = await visit.read(classifiers.examples, classifier_id, limit=PAGE_SIZE + 1, after=after)
    return page("examples.html", visit=visit, done=done, info=info, after=after, **_first_page(rows))


def _first_page(rows: Sequence[Any]) -> dict[str, Any]:
    """The rows of one page, and the id after which the following page starts."""
    following = rows[PAGE_SIZE - 1].id if len(rows) > PAGE_SIZE else None
    return {"rows": rows[:PAGE_SIZE], "following": following}


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
        target = visit.text("back")
        return redirect(f"/classifiers/{classifier_id}/{target if target in RETURN_PAGES else 'examples'}?done={done}")
    earlier = await predict(visit, classifier_id, text)
    try:
        done = await _change(visit, classifier_id)
    except RequestError as error:
        return await show_answer(visit, classifier_id, text, error=error)
    return await show_answer(visit, classifier_id, text, earlier=earlier, done=done)


async def _change(visit: Visit, classifier_id: str) -> str:
    """Apply the form of one example; returns the value of `done` for the next page."""
    change, example_id = visit.service.classifiers.change_examples, visit.text("example")
    if visit.text("act") == "remove":
        await visit.change(change, classifier_id, remove=[example_id])
        return "removed"
    example = Labelled(visit.text("text"), _label(visit))
    if not example_id:
        await visit.change(change, classifier_id, add=[example])
        return "added"
    stored = next((row for row in await all_examples(visit, classifier_id) if row.id == example_id), None)
    if stored is None:
        raise NotFound("This example no longer exists. It may have been changed elsewhere; open the page again.")
    if stored.text.replace("\r\n", "\n") == example.text:  # browsers change how lines end
        example = replace(example, text=stored.text)
    if example != Labelled(stored.text, stored.label):
        await visit.change(change, classifier_id, add=[example], remove=[example_id])
    return "corrected"


def _label(visit: Visit) -> str | None:
    if visit.text("none"):
        return None
    label = visit.text("label").strip()
    if not label:
        raise Invalid("The label is missing. Enter one, or mark the text as a counter-example.")
    return label

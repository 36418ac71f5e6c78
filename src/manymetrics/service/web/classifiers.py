"""The list of classifiers, creating one, trying a text, and editing examples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from manymetrics.service.domain.errors import Invalid, NotFound, RequestError
from manymetrics.service.domain.schemas import Labelled, Prediction, StoredExample
from manymetrics.service.web.pages import PAGES, ClassifierId, Cursor, Done, page, redirect
from manymetrics.service.web.session import Reader, Visit, Writer
from manymetrics.service.web.uploads import read_upload

router = APIRouter(include_in_schema=False, tags=[PAGES])
PAGE_SIZE = 50
NEAREST = 5  # examples shown with an answer
RETURN_PAGES = ("examples", "check")  # pages of a classifier that have forms for one example
SkippedRows = Annotated[int, Query(ge=0, le=10**9)]


@router.get("/classifiers")
async def show_classifiers(visit: Reader, after: Cursor = None, done: Done = None) -> Response:
    """The classifiers of a tenant, in pages."""
    rows = await visit.read(visit.service.classifiers.list, limit=PAGE_SIZE + 1, after=after)
    return page("list.html", visit=visit, done=done, after=after, **_first_page(rows))


@router.get("/classifiers/new")
async def ask_for_examples(visit: Writer) -> Response:
    """The form for a new classifier."""
    return _new(visit)


@router.post("/classifiers")
async def create_classifier(visit: Writer) -> Response:
    """Create a classifier from pasted or uploaded examples."""
    create = visit.service.classifiers.create
    try:
        upload = await visit.run(lambda: read_upload(visit.form))
        created = await visit.change(create, name=visit.text("name").strip(), examples=upload.examples)
    except RequestError as error:
        return _new(visit, error)
    skipped = f"&skipped={upload.skipped}" if upload.skipped else ""
    return redirect(f"/classifiers/{created}?done=created{skipped}")


def _new(visit: Visit, error: RequestError | None = None) -> Response:
    return page("new.html", visit=visit, error=error, max_bytes=visit.service.settings.most_body_bytes)


@router.get("/classifiers/{classifier_id}")
async def show_classifier(
    visit: Reader, classifier_id: ClassifierId, done: Done = None, skipped: SkippedRows = 0
) -> Response:
    """A classifier, and a field for a text to try."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return page("try.html", visit=visit, done=done, info=info, text="", prediction=None, skipped=skipped)


@router.post("/classifiers/{classifier_id}/try")
async def try_text(visit: Reader, classifier_id: ClassifierId) -> Response:
    """Classify a text and explain the answer."""
    return await _show_answer(visit, classifier_id, visit.text("text"))


async def _show_answer(visit: Visit, classifier_id: str, text: str, **shown: Any) -> Response:
    """The page with the answer for a text and the one `earlier`, or with the reason why there is none."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    values = {"prediction": None, "earlier": None, "skipped": 0, **shown}
    try:
        values["prediction"] = await _predict(visit, classifier_id, text, nearest=NEAREST)
        values["explanation"] = await visit.work(visit.service.answering.explain, classifier_id, text)
        values["example_ids"] = ids_by_example(await all_examples(visit, classifier_id))
    except RequestError as problem:
        values |= {"prediction": None, "error": shown.get("error") or problem}
    return page("try.html", visit=visit, info=info, text=text, **values)


async def _predict(visit: Visit, classifier_id: str, text: str, *, nearest: int = 0) -> Prediction:
    predictions = await visit.predict(classifier_id, [text], nearest=nearest)
    return predictions.items[0]


async def all_examples(visit: Visit, classifier_id: str) -> Sequence[StoredExample]:
    """All examples of a classifier."""
    return await visit.read(visit.service.classifiers.examples, classifier_id, limit=None)


def ids_by_example(examples: Sequence[StoredExample]) -> dict[tuple[str, str | None], str]:
    """The id of each text and label, of duplicates the first."""
    return {(example.text, example.label): example.id for example in reversed(examples)}


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
    earlier = await _predict(visit, classifier_id, text)
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

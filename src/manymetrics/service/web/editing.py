"""The examples of a classifier: look through them, add some, mend or remove one in place."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.responses import Response

from manymetrics.service.idempotency import Replayed
from manymetrics.service.problems import Invalid, NotFound, Problem
from manymetrics.service.values import Labelled, StoredExample
from manymetrics.service.web.access import ClassifierId, PageRoute, Reader, Visit, Writer, see
from manymetrics.service.web.listing import PER_PAGE, Cursor, Done, handed_in
from manymetrics.service.web.rendering import page
from manymetrics.service.web.trying import predict, show_answer
from manymetrics.service.web.uploads import FORMATS, read_examples

router = APIRouter(include_in_schema=False, route_class=PageRoute)
PAGES_BACK = ("examples", "check")  # that a change may lead back to


@router.get("/classifiers/{classifier_id}/examples")
async def show_examples(
    visit: Reader, classifier_id: ClassifierId, after: Cursor = None, done: Done = None
) -> Response:
    """The examples, a page at a time."""
    classifiers = visit.service.classifiers
    info = await visit.read(classifiers.get, classifier_id)
    rows = await visit.read(classifiers.examples, classifier_id, limit=PER_PAGE + 1, after=after)
    following = rows[PER_PAGE - 1].id if len(rows) > PER_PAGE else None
    return page(
        "examples.html", visit=visit, done=done, info=info, rows=rows[:PER_PAGE], following=following, after=after,
        formats=FORMATS,
    )  # fmt: skip


@router.post("/classifiers/{classifier_id}/examples")
async def change_example(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Add, mend or remove one example; where a text was being tried, show how its answer has changed."""
    tried = visit.text("tried")
    if not tried:
        done = await _change(visit, classifier_id)
        back = visit.text("back")
        return see(f"/classifiers/{classifier_id}/{back if back in PAGES_BACK else 'examples'}?done={done}")
    before, problem, code = await predict(visit, classifier_id, tried), None, None
    try:
        code = await _change(visit, classifier_id)
    except Problem as found:
        problem = found
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return await show_answer(
        visit, info, tried, before=None if problem else before, done=code, problem=problem
    )  # fmt: skip


@router.post("/classifiers/{classifier_id}/more")
async def add_many(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Add what was pasted or uploaded."""
    given = await handed_in(visit)

    def add() -> None:
        add_examples(visit, classifier_id, read_examples(given).examples)

    await visit.work(add)
    return see(f"/classifiers/{classifier_id}/examples?done=added")


def add_examples(visit: Visit, classifier_id: str, examples: Sequence[Labelled], remove: Sequence[str] = ()) -> None:
    """Make the change that a form asks for, once."""
    request = visit.once("examples", classifier_id, [(one.text, one.label) for one in examples], list(remove))
    try:
        visit.service.classifiers.change_examples(
            visit.caller, classifier_id, add=examples, remove=remove, request=request
        )
    except Replayed:
        return


async def _change(visit: Visit, classifier_id: str) -> str:
    """Do what the form of one example asks for; gives what to say of it."""
    example = visit.text("example")
    if visit.text("act") == "remove":
        await visit.work(lambda: add_examples(visit, classifier_id, [], [example]))
        return "removed"
    wanted = Labelled(visit.text("text"), _label(visit))
    if not example:
        await visit.work(lambda: add_examples(visit, classifier_id, [wanted]))
        return "added"

    def mend() -> None:
        there = _find(visit, classifier_id, example)
        unchanged = there.text.replace("\r\n", "\n") == wanted.text
        mended = Labelled(there.text, wanted.label) if unchanged else wanted
        if (mended.text, mended.label) != (there.text, there.label):
            add_examples(visit, classifier_id, [mended], [example])

    await visit.work(mend)
    return "corrected"


def _label(visit: Visit) -> str | None:
    if visit.text("none"):
        return None
    label = visit.text("label").strip()
    if not label:
        raise Invalid("The label is missing. Give one, or say that the text fits none.")
    return label


def _find(visit: Visit, classifier_id: str, example: str) -> StoredExample:
    classifiers = visit.service.classifiers
    most = classifiers.limit(visit.caller, "most_examples")
    for row in classifiers.examples(visit.caller, classifier_id, limit=most):
        if row.id == example:
            return row
    raise NotFound("There is no such example any more. Somebody else may have changed it; open the page again.")

"""The list of classifiers, and the page that makes one."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from manymetrics.service.idempotency import Replayed
from manymetrics.service.problems import Invalid, Problem
from manymetrics.service.values import Labelled
from manymetrics.service.web.access import PageRoute, Reader, Visit, Writer, see
from manymetrics.service.web.rendering import page
from manymetrics.service.web.uploads import FORMATS, Given, read_examples, sample_tasks

router = APIRouter(include_in_schema=False, route_class=PageRoute)
PER_PAGE = 50
Cursor = Annotated[str | None, Query(max_length=40, pattern=r"^[a-z]+_[0-9a-f]+$")]
Done = Annotated[str | None, Query(max_length=20)]
FIELDS = ("format", "text_column", "label_column", "encoding")


@cache
def samples() -> dict[str, tuple[Labelled, ...]]:
    """Made-up examples to start from, by name."""
    return {
        task.name: tuple(Labelled(text, label) for text, label in zip(task.train.texts, task.train.labels, strict=True))
        for task in sample_tasks()
    }


@router.get("/classifiers")
async def show_classifiers(visit: Reader, after: Cursor = None, done: Done = None) -> Response:
    """The classifiers of a tenant."""
    found = await visit.read(visit.service.classifiers.list, limit=PER_PAGE + 1, after=after)
    following = found[PER_PAGE - 1].id if len(found) > PER_PAGE else None
    return page("list.html", visit=visit, done=done, items=found[:PER_PAGE], following=following, after=after)


@router.get("/classifiers/new")
async def ask_for_examples(visit: Writer) -> Response:
    """The page that makes a classifier."""
    return await _form(visit, {})


@router.post("/classifiers")
async def create_classifier(visit: Writer) -> Response:
    """Make a classifier of what was pasted or uploaded, or of a sample."""
    try:
        made, left_out = await _created(visit)
    except Problem as problem:
        given = {name: visit.text(name) for name in ("name", "pasted", *FIELDS)}
        return await _form(visit, given, problem)
    more = f"&left_out={left_out}" if left_out else ""
    return see(f"/classifiers/{made}?done=created{more}")


async def handed_in(visit: Visit) -> Given:
    """What was pasted, or else uploaded, with what was said about it."""
    pasted = visit.text("pasted")
    name, content = ("", pasted.encode()) if pasted.strip() else await visit.upload("file")
    return Given(content, name, *(visit.text(one).strip() for one in FIELDS))


async def _created(visit: Visit) -> tuple[str, int]:
    """The id of the classifier, and how many rows were left out."""
    given, sample = await handed_in(visit), visit.text("sample")
    name = visit.text("name").strip() or (sample or "")

    def create() -> tuple[str, int]:
        if sample and sample not in samples():
            raise Invalid("There is no such sample. Choose one of the list.")
        examples, left_out = (list(samples()[sample]), 0) if sample else _read(given)
        request = visit.once("create", name, [(one.text, one.label) for one in examples])
        try:
            made = visit.service.classifiers.create(visit.caller, name=name, examples=examples, request=request)
        except Replayed as before:
            return before.answered.body, left_out
        return made.id, left_out

    return await visit.work(create)


def _read(given: Given) -> tuple[list[Labelled], int]:
    found = read_examples(given)
    return found.examples, found.left_out


async def _form(visit: Visit, given: dict[str, Any], problem: Problem | None = None) -> Response:
    values = {**dict.fromkeys(("name", "pasted", *FIELDS), ""), **given}
    found = await run_in_threadpool(samples)
    status = problem.status if problem else 200
    return page(
        "new.html", status=status, visit=visit, given=values, formats=FORMATS, samples=found, problem=problem,
        most_bytes=visit.service.settings.most_body_bytes,
    )  # fmt: skip

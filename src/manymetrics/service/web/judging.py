"""How good a classifier is, what is wrong with its examples, and which texts to label next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from manymetrics.service.problems import Invalid, Problem
from manymetrics.service.values import ClassifierInfo, Labelled
from manymetrics.service.web.access import ClassifierId, PageRoute, Reader, Visit, Writer
from manymetrics.service.web.editing import add_examples
from manymetrics.service.web.listing import Done, handed_in
from manymetrics.service.web.rendering import page
from manymetrics.service.web.trying import ids_of
from manymetrics.service.web.uploads import FORMATS, as_lines, read_examples

router = APIRouter(include_in_schema=False, route_class=PageRoute)
MOST_SUGGESTED = 50


@dataclass(frozen=True)
class Gain:
    """What came of labelling: how many examples, and the estimated accuracy before and after."""

    examples: int
    before: float | None
    after: float | None


@router.get("/classifiers/{classifier_id}/check")
async def show_findings(visit: Reader, classifier_id: ClassifierId, done: Done = None) -> Response:
    """The estimate and the findings."""
    return await _findings(visit, classifier_id, done=done)


@router.post("/classifiers/{classifier_id}/check")
async def try_test_set(visit: Reader, classifier_id: ClassifierId) -> Response:
    """The same, with how a labelled test set is answered."""
    given = await handed_in(visit)
    try:
        read = await visit.work(lambda: read_examples(given))
        return await _findings(visit, classifier_id, test=read.examples)
    except Invalid as problem:
        return await _findings(visit, classifier_id, problem=problem, pasted=visit.text("pasted"))


async def _findings(visit: Visit, classifier_id: str, *, test: Sequence[Labelled] = (), done: str | None = None,
                    problem: Problem | None = None, pasted: str = "") -> Response:  # fmt: skip
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    found = await visit.work(lambda: visit.service.answering.evaluate(visit.caller, classifier_id, test))
    status = problem.status if problem else 200
    return page(
        "check.html", status=status, visit=visit, done=done, info=info, found=found, problem=problem, pasted=pasted,
        ids=await ids_of(visit, classifier_id), formats=FORMATS,
    )  # fmt: skip


@router.get("/classifiers/{classifier_id}/suggestions")
async def ask_for_texts(visit: Reader, classifier_id: ClassifierId) -> Response:
    """A field for texts without labels."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return _suggestions(visit, info, "")


@router.post("/classifiers/{classifier_id}/suggestions")
async def suggest(visit: Reader, classifier_id: ClassifierId) -> Response:
    """Which of the texts to label next."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return await _suggest(visit, info, visit.text("texts"))


@router.post("/classifiers/{classifier_id}/labels")
async def label_texts(visit: Writer, classifier_id: ClassifierId) -> Response:
    """Add the texts that were given labels, then suggest some of those that are left."""
    examples = _labelled(visit)
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    texts = visit.text("texts")
    if not examples:
        none = Invalid("No text has a label yet. Give at least one, or say that a text fits none.")
        return await _suggest(visit, info, texts, problem=none)
    try:
        await visit.work(lambda: add_examples(visit, classifier_id, examples))
    except Problem as problem:
        return await _suggest(visit, info, texts, problem=problem)
    changed = await visit.read(visit.service.classifiers.get, classifier_id)
    accuracies = [one.estimate.accuracy if one.estimate else None for one in (info, changed)]
    known = {one.text for one in examples}
    left = "\n".join(text for text in as_lines(texts) if text not in known)
    return await _suggest(visit, changed, left, gain=Gain(len(examples), *accuracies))


def _labelled(visit: Visit) -> list[Labelled]:
    found = []
    for place in range(MOST_SUGGESTED):
        text, label = visit.text(f"text-{place}"), visit.text(f"label-{place}").strip()
        if text and (label or visit.text(f"none-{place}")):
            found.append(Labelled(text, None if visit.text(f"none-{place}") else label))
    return found


async def _suggest(visit: Visit, info: ClassifierInfo, texts: str, **more: Any) -> Response:
    lines = as_lines(texts)
    if not lines and more.get("gain"):
        return _suggestions(visit, info, "", **more)
    try:
        count = int(min(max(visit.number("count", 5), 1), MOST_SUGGESTED))
        answering = visit.service.answering
        found = await visit.work(lambda: answering.suggest(visit.caller, info.id, lines, count=count))
    except Problem as problem:
        return _suggestions(visit, info, texts, problem=problem)
    return _suggestions(visit, info, "\n".join(lines), found=found, count=count, **more)


def _suggestions(visit: Visit, info: ClassifierInfo, texts: str, **more: Any) -> Response:
    values = {"found": [], "gain": None, "problem": None, "count": 5, **more}
    status = values["problem"].status if values["problem"] else 200
    return page("suggest.html", status=status, visit=visit, info=info, texts=texts, **values)

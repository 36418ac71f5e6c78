"""The page of a classifier: try a text, see why it is answered so, mend an example and watch the answer change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from manymetrics.service.problems import Problem
from manymetrics.service.values import ClassifierInfo, ExplanationInfo, Prediction
from manymetrics.service.web.access import ClassifierId, PageRoute, Reader, Visit
from manymetrics.service.web.listing import Done
from manymetrics.service.web.rendering import page

router = APIRouter(include_in_schema=False, route_class=PageRoute)
NEAREST = 5
MOST_LABELS = 12  # shown of an answer
Ids = dict[tuple[str, str | None], str]  # example by text and label -> its id


@dataclass(frozen=True)
class Close:
    """An example that is like the text, and its id; "" where it has just gone."""

    id: str
    text: str
    label: str
    similarity: float


@dataclass(frozen=True)
class Answer:
    """All that the page shows of one answer; `before` is what was answered before a change."""

    text: str
    prediction: Prediction
    labels: Sequence[tuple[str, float, float | None]]  # the likeliest: probability, and that of before
    more: int  # labels not shown
    nearest: Sequence[Close]
    explanation: ExplanationInfo
    before: Prediction | None


@router.get("/classifiers/{classifier_id}")
async def show_classifier(
    visit: Reader, classifier_id: ClassifierId, done: Done = None,
    left_out: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> Response:  # fmt: skip
    """A classifier, and a field to try a text in."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return page("try.html", visit=visit, done=done, info=info, text="", answer=None, problem=None, left_out=left_out)


@router.post("/classifiers/{classifier_id}/try")
async def try_text(visit: Reader, classifier_id: ClassifierId) -> Response:
    """Answer a text and say why."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    return await show_answer(visit, info, visit.text("text"))


async def show_answer(visit: Visit, info: ClassifierInfo, text: str, *, before: Prediction | None = None,
                      done: str | None = None, problem: Problem | None = None) -> Response:  # fmt: skip
    """The page with the answer to a text; where that cannot be had, with the reason."""
    answer = None
    try:
        answer = await _answer(visit, info, text, before)
    except Problem as found:
        problem = problem or found
    status = problem.status if problem else 200
    return page(
        "try.html", status=status, visit=visit, done=done, info=info, text=text, answer=answer, problem=problem,
        left_out=0,
    )  # fmt: skip


async def predict(visit: Visit, classifier_id: str, text: str, *, nearest: int = 0) -> Prediction:
    """The answer to one text, in the tenant's turn, together with what others ask."""
    service = visit.service
    question = await visit.read(service.answering.question, classifier_id, [text], nearest=nearest)
    found: Any = await asyncio.wrap_future(service.answers.submit(visit.caller.tenant, question, size=1))
    return found.items[0]  # type: ignore[no-any-return]


async def ids_of(visit: Visit, classifier_id: str) -> Ids:
    """The ids of a classifier's examples."""
    most = visit.service.classifiers.limit(visit.caller, "most_examples")
    rows = await visit.read(visit.service.classifiers.examples, classifier_id, limit=most)
    return {(row.text, row.label): row.id for row in reversed(rows)}


async def _answer(visit: Visit, info: ClassifierInfo, text: str, before: Prediction | None) -> Answer:
    found = await predict(visit, info.id, text, nearest=NEAREST)
    why = await visit.work(lambda: visit.service.answering.explain(visit.caller, info.id, text))
    ids = await ids_of(visit, info.id)
    likeliest = sorted(found.probabilities.items(), key=lambda one: -one[1])
    earlier = before.probabilities if before else {}
    labels = [(label, share, earlier.get(label) if before else None) for label, share in likeliest[:MOST_LABELS]]
    nearest = [
        Close(ids.get((one.text, one.label), ""), one.text, one.label, max(0.0, one.similarity))
        for one in found.nearest
    ]
    return Answer(text, found, labels, len(likeliest) - len(labels), nearest, why, before)

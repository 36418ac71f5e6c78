"""Routes that ask a classifier something: predictions, explanations, evaluation, suggestions."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter
from starlette.responses import Response

from manymetrics.service.api.access import Reader, TheService
from manymetrics.service.api.bodies import EvaluateBody, ExplainBody, Page, SuggestBody, TextsBody
from manymetrics.service.api.classifying import Id
from manymetrics.service.api.problems import documented
from manymetrics.service.api.reading import StrictRoute
from manymetrics.service.values import EvaluationInfo, ExplanationInfo, Predictions, SuggestedText

router = APIRouter(
    prefix="/v1/classifiers/{classifier_id}",
    tags=["answers"],
    route_class=StrictRoute,
    responses=documented(400, 401, 403, 404, 413, 415, 422, 429, 503),
)
_PREDICTIONS = TypeAdapter(Predictions)


@router.post("/predictions", response_model=Predictions)
async def predict(classifier_id: Id, body: TextsBody, caller: Reader, service: TheService) -> Response:
    """Answer some texts; requests that arrive together are answered together."""
    ask = service.answering.question
    question = await run_in_threadpool(ask, caller, classifier_id, body.texts, nearest=body.nearest)
    waiting = service.answers.submit(caller.tenant, question, size=len(body.texts))
    found: Predictions = await asyncio.wrap_future(waiting)
    return Response(_PREDICTIONS.dump_json(found), media_type="application/json")


@router.post("/explanations")
async def explain(classifier_id: Id, body: ExplainBody, caller: Reader, service: TheService) -> ExplanationInfo:
    """Why a text is answered as it is."""
    work = service.work.submit(caller.tenant, lambda: service.answering.explain(caller, classifier_id, body.text))
    found: ExplanationInfo = await asyncio.wrap_future(work)
    return found


@router.post("/evaluation")
async def evaluate(classifier_id: Id, body: EvaluateBody, caller: Reader, service: TheService) -> EvaluationInfo:
    """The leave-one-out estimate, what is wrong with the examples, and how a labelled test set is answered."""
    test = [one.value() for one in body.test]
    work = service.work.submit(caller.tenant, lambda: service.answering.evaluate(caller, classifier_id, test))
    found: EvaluationInfo = await asyncio.wrap_future(work)
    return found


@router.post("/suggestions")
async def suggest(classifier_id: Id, body: SuggestBody, caller: Reader, service: TheService) -> Page[SuggestedText]:
    """Which of some unlabelled texts to label next, and why."""

    def find() -> Any:
        return service.answering.suggest(caller, classifier_id, body.texts, count=body.count)

    return Page(items=await asyncio.wrap_future(service.work.submit(caller.tenant, find)))

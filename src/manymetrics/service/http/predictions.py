"""Routes that ask a classifier something: predictions, explanations, evaluation, suggestions."""

import asyncio

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

import manymetrics as mm
from manymetrics.service.domain.schemas import EvaluationInfo, ExplanationInfo, Predictions, adapter
from manymetrics.service.http.auth import KeyRoute, Reader, TheService
from manymetrics.service.http.bodies import EvaluateBody, ExplainBody, Page, SuggestBody, TextsBody, labelled
from manymetrics.service.http.classifiers import Id
from manymetrics.service.http.errors import documented

router = APIRouter(
    prefix="/v1/classifiers/{classifier_id}",
    tags=["answers"],
    route_class=KeyRoute,
    responses=documented(400, 401, 403, 404, 413, 415, 422, 429, 503),
)


@router.post("/predictions", response_model=Predictions)
async def predict(classifier_id: Id, body: TextsBody, caller: Reader, service: TheService) -> Response:
    """Answer some texts; requests that arrive together are answered together."""
    ask = service.answering.question
    question = await run_in_threadpool(ask, caller, classifier_id, body.texts, nearest=body.nearest)
    predictions = await asyncio.wrap_future(service.answers.submit(caller.tenant, question, size=len(body.texts)))
    return Response(adapter(Predictions).dump_json(predictions), media_type="application/json")


@router.post("/explanations")
async def explain(classifier_id: Id, body: ExplainBody, caller: Reader, service: TheService) -> ExplanationInfo:
    """Why a text is answered as it is."""
    work = service.work.submit(caller.tenant, lambda: service.answering.explain(caller, classifier_id, body.text))
    return await asyncio.wrap_future(work)


@router.post("/evaluation")
async def evaluate(classifier_id: Id, body: EvaluateBody, caller: Reader, service: TheService) -> EvaluationInfo:
    """The leave-one-out estimate, what is wrong with the examples, and how a labelled test set is answered."""
    test = labelled(body.test)
    work = service.work.submit(caller.tenant, lambda: service.answering.evaluate(caller, classifier_id, test))
    return await asyncio.wrap_future(work)


@router.post("/suggestions")
async def suggest(classifier_id: Id, body: SuggestBody, caller: Reader, service: TheService) -> Page[mm.Suggestion]:
    """Which of some unlabelled texts to label next, and why."""
    ask = service.answering.suggest
    work = service.work.submit(caller.tenant, lambda: ask(caller, classifier_id, body.texts, count=body.count))
    return Page(items=list(await asyncio.wrap_future(work)))

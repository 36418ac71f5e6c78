"""Routes that ask a classifier something: predictions, explanations, evaluation, suggestions."""

from fastapi import APIRouter
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
    predictions = await service.predict(caller, classifier_id, body.texts, nearest=body.nearest)
    return Response(adapter(Predictions).dump_json(predictions), media_type="application/json")


@router.post("/explanations")
async def explain(classifier_id: Id, body: ExplainBody, caller: Reader, service: TheService) -> ExplanationInfo:
    """Why a text is answered as it is."""
    return await service.run(caller, lambda: service.answering.explain(caller, classifier_id, body.text))


@router.post("/evaluation")
async def evaluate(classifier_id: Id, body: EvaluateBody, caller: Reader, service: TheService) -> EvaluationInfo:
    """The leave-one-out estimate, what is wrong with the examples, and how a labelled test set is answered."""
    test = labelled(body.test)
    return await service.run(caller, lambda: service.answering.evaluate(caller, classifier_id, test))


@router.post("/suggestions")
async def suggest(classifier_id: Id, body: SuggestBody, caller: Reader, service: TheService) -> Page[mm.Suggestion]:
    """Which of some unlabelled texts to label next, and why."""
    ask = service.answering.suggest
    suggestions = await service.run(caller, lambda: ask(caller, classifier_id, body.texts, count=body.count))
    return Page(items=list(suggestions))

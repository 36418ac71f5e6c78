"""The first page of a classifier: try a text, see why it is classified so, and correct the nearest examples."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from manymetrics.service.domain.errors import RequestError
from manymetrics.service.domain.schemas import Prediction, Predictions, StoredExample
from manymetrics.service.web.pages import ClassifierId, Done, PageRoute, page
from manymetrics.service.web.session import Reader, Visit

router = APIRouter(include_in_schema=False, route_class=PageRoute)
NEAREST = 5  # examples shown with an answer
ExampleIds = dict[tuple[str, str | None], str]  # id by text and label
SkippedRows = Annotated[int, Query(ge=0, le=10**9)]


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
    return await show_answer(visit, classifier_id, visit.text("text"))


async def show_answer(visit: Visit, classifier_id: str, text: str, **shown: Any) -> Response:
    """The page with the answer for a text and the one `earlier`, or with the reason why there is none."""
    info = await visit.read(visit.service.classifiers.get, classifier_id)
    values = {"prediction": None, "earlier": None, "skipped": 0, **shown}
    try:
        values["prediction"] = await predict(visit, classifier_id, text, nearest=NEAREST)
        values["explanation"] = await visit.work(visit.service.answering.explain, classifier_id, text)
        values["example_ids"] = ids_by_example(await all_examples(visit, classifier_id))
    except RequestError as problem:
        values |= {"prediction": None, "error": shown.get("error") or problem}
    return page("try.html", visit=visit, info=info, text=text, **values)


async def predict(visit: Visit, classifier_id: str, text: str, *, nearest: int = 0) -> Prediction:
    """The prediction for one text, computed in a batch with other requests."""
    service = visit.service
    question = await visit.read(service.answering.question, classifier_id, [text], nearest=nearest)
    future = service.answers.submit(visit.caller.tenant, question, size=1)
    predictions: Predictions = await asyncio.wrap_future(future)
    return predictions.items[0]


async def all_examples(visit: Visit, classifier_id: str) -> Sequence[StoredExample]:
    """All examples of a classifier."""
    return await visit.read(visit.service.classifiers.examples, classifier_id, limit=None)


def ids_by_example(examples: Sequence[StoredExample]) -> ExampleIds:
    """The id of each text and label, of duplicates the first."""
    return {(example.text, example.label): example.id for example in reversed(examples)}

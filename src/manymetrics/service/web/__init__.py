"""Web pages: rendered on the server, without a build step, usable without a script.

    session.py    sessions, cookies, forms, access        classifiers.py  list, create, edit examples
    pages.py      templates -> responses; assets          try_text.py     try a text, explanation
    sign_in.py    sign in and out                         review.py       findings, suggestions
    uploads.py    pasted or uploaded -> examples          history.py      versions, settings
                                                          operator.py     load and model

The pages call the same verbs as the HTTP API.
"""

from fastapi import FastAPI

from manymetrics.service.domain.service import Service
from manymetrics.service.web import classifiers, history, operator, pages, review, sign_in, try_text

ROUTERS = (pages, sign_in, classifiers, try_text, review, history, operator)
OPEN = frozenset({"/", "/sign-in", "/static/{name}"})  # the only routes that need no session


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the routes of the pages to an app."""
    app.state.service = service
    for module in ROUTERS:
        app.include_router(module.router)

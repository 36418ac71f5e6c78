"""The pages: server-rendered, without a build step, usable without a script.

    access.py      sessions, scopes, forms            signing.py     sign in and out
    sessions.py    who is signed in                   listing.py     the list, and making a classifier
    rendering.py   templates -> pages                 trying.py      try a text, see why
    assets.py      style, script, icon                editing.py     examples
    uploads.py     pasted or uploaded -> examples     judging.py     findings, what to label next
    pictures.py    numbers -> pictures                history.py     versions, settings
                                                      operating.py   the operator's page

Every page asks the same verbs as the HTTP API.
"""

from __future__ import annotations

from fastapi import FastAPI

from manymetrics.service.assembly import Service
from manymetrics.service.web import assets, editing, history, judging, listing, operating, signing, trying

ROUTERS = (assets, signing, listing, trying, editing, judging, history, operating)
OPEN = frozenset({"/", "/sign-in", "/static/{name}"})  # the only pages that need no session


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the routes of the pages to the app of a service."""
    app.state.service = service
    for module in ROUTERS:
        app.include_router(module.router)

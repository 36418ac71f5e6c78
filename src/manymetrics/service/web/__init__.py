"""Web pages: rendered on the server, without a build step, usable without a script.

    pages.py        templates -> responses; assets; the page about an error
    session.py      sessions, cookies, forms, access; sign in and out
    classifiers.py  list, create, try a text, edit examples, findings, suggestions, versions, settings
    uploads.py      pasted or uploaded -> examples

The pages call the same verbs as the HTTP API.
"""

from manymetrics.service.web import classifiers, pages, session

ROUTERS = (pages.router, session.router, classifiers.router)
OPEN = frozenset({"/sign-in", "/static/{name}"})  # the only routes that need no session

"""Web pages: rendered on the server, without a build step, usable without a script.

    session.py    sessions, cookies, forms, access        classifiers.py  list, create, try a text, edit examples
    pages.py      templates -> responses; assets          review.py       findings, suggestions, versions, settings
    sign_in.py    sign in and out                         uploads.py      pasted or uploaded -> examples

The pages call the same verbs as the HTTP API.
"""

from manymetrics.service.web import classifiers, pages, review, sign_in

ROUTERS = (pages.router, sign_in.router, classifiers.router, review.router)
OPEN = frozenset({"/", "/sign-in", "/static/{name}"})  # the only routes that need no session

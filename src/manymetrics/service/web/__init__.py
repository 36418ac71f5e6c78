"""Web pages: rendered on the server, without a build step, usable without a script.

The pages call the same verbs as the HTTP API.
"""

from manymetrics.service.web import classifiers, pages, session

ROUTERS = (pages.router, session.router, classifiers.router)

"""The HTTP API: `create_app` makes it of the settings.

application.py   the app and its middleware             access.py       keys, scopes, rates, idempotency keys
bodies.py        what requests must look like           problems.py     every error as problem+json
classifying.py   routes of classifiers                  answering.py    routes of predictions and the like
operating.py     health, metrics, the model, sharing    reading.py      strict reading of JSON bodies
documents.py     the OpenAPI document and its page      guards.py       bounds on what reaches a route
"""

from manymetrics.service.api.application import create_app

__all__ = ["create_app"]

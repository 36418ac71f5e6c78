"""The HTTP API: `create_app` makes it of the settings."""

from manymetrics.service.http.app import create_app

__all__ = ["create_app"]

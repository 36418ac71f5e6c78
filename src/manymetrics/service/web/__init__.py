"""The pages: server-rendered, without a build step."""

from __future__ import annotations

from fastapi import FastAPI

from manymetrics.service.assembly import Service


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the routes of the pages to the app."""

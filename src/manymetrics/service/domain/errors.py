"""Errors that clients see: one sentence, and an HTTP status.

No message repeats what the client sent: a text, a label or a name never comes back in an error.
"""

import math
from http import HTTPStatus


class RequestError(Exception):
    """A request that cannot be fulfilled."""

    status = 500

    def __init__(self, detail: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.detail, self.retry_after = detail, retry_after
        self.status = status or self.status

    @property
    def title(self) -> str:
        """What HTTP calls the status."""
        return HTTPStatus(self.status).phrase.capitalize()

    @property
    def headers(self) -> dict[str, str]:
        """When to send the request again, if that is known."""
        return {} if self.retry_after is None else {"Retry-After": str(max(1, math.ceil(self.retry_after)))}


class Malformed(RequestError):
    """The body is no JSON that can be read."""

    status = 400


class Unauthenticated(RequestError):
    """No key, or none that is valid; the reason is not given."""

    status = 401


class Forbidden(RequestError):
    """The key is valid, its scopes do not cover the request."""

    status = 403


class NotFound(RequestError):
    """There is no such thing, or it is another tenant's: the response is the same."""

    status = 404


class Conflict(RequestError):
    """The request contradicts what is there."""

    status = 409


class Invalid(RequestError):
    """The request can be read but not be used."""

    status = 422


class TooMany(RequestError):
    """The tenant asks for more than its limits allow, or the queue is full."""

    status = 429


class Unavailable(RequestError):
    """The service cannot answer for now."""

    status = 503

"""Errors that clients see: one sentence, and an HTTP status.

No message repeats what the client sent: a text, a label or a name never comes back in an error.
"""

import math


class RequestError(Exception):
    """A request that cannot be fulfilled."""

    status, title = 500, "Internal error"

    def __init__(self, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.detail, self.retry_after = detail, retry_after

    @property
    def headers(self) -> dict[str, str]:
        """When to send the request again, if that is known."""
        return {} if self.retry_after is None else {"Retry-After": str(max(1, math.ceil(self.retry_after)))}


class Malformed(RequestError):
    """The body is no JSON that can be read."""

    status, title = 400, "Malformed request"


class Unauthenticated(RequestError):
    """No key, or none that is valid; the reason is not given."""

    status, title = 401, "Unauthenticated"


class Forbidden(RequestError):
    """The key is valid, its scopes do not cover the request."""

    status, title = 403, "Forbidden"


class NotFound(RequestError):
    """There is no such thing, or it is another tenant's: the response is the same."""

    status, title = 404, "Not found"


class Conflict(RequestError):
    """The request contradicts what is there."""

    status, title = 409, "Conflict"


class Stale(RequestError):
    """The classifier has changed since the version that the client named."""

    status, title = 412, "Precondition failed"


class TooLarge(RequestError):
    """The body has too many bytes."""

    status, title = 413, "Content too large"


class UnsupportedMedia(RequestError):
    """The body is not JSON, or is compressed."""

    status, title = 415, "Unsupported media type"


class Invalid(RequestError):
    """The request can be read but not be used."""

    status, title = 422, "Unprocessable content"


class TooMany(RequestError):
    """The tenant asks for more than its limits allow, or the queue is full."""

    status, title = 429, "Too many requests"


class Unavailable(RequestError):
    """The service cannot answer for now."""

    status, title = 503, "Service unavailable"

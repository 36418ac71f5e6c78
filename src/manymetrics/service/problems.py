"""Everything the service answers with instead of a result: one sentence for the client, and an HTTP status.

No message repeats what the client sent: a text, a label or a name never comes back in an error.
"""

from __future__ import annotations


class Problem(Exception):
    """A request that cannot be fulfilled."""

    status = 500
    title = "Internal error"

    def __init__(self, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after


class Malformed(Problem):
    """The body is no JSON that can be read."""

    status, title = 400, "Malformed request"


class Unauthenticated(Problem):
    """No key, or none that opens anything; why is not told."""

    status, title = 401, "Unauthenticated"


class Forbidden(Problem):
    """The key is good, its scopes do not cover the request."""

    status, title = 403, "Forbidden"


class NotFound(Problem):
    """There is no such thing, or it is another tenant's: both look the same."""

    status, title = 404, "Not found"


class Conflict(Problem):
    """The request contradicts what is there."""

    status, title = 409, "Conflict"


class Stale(Problem):
    """The classifier has changed since the version that the client named."""

    status, title = 412, "Precondition failed"


class TooLarge(Problem):
    """The body has too many bytes."""

    status, title = 413, "Content too large"


class UnsupportedMedia(Problem):
    """The body is not JSON, or is compressed."""

    status, title = 415, "Unsupported media type"


class Invalid(Problem):
    """The request can be read but not be used."""

    status, title = 422, "Unprocessable content"


class TooMany(Problem):
    """The tenant asks for more than its limits allow, or the queue is full."""

    status, title = 429, "Too many requests"


class Unavailable(Problem):
    """The service cannot answer for now."""

    status, title = 503, "Service unavailable"

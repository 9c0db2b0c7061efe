"""Kinds of errors a caller can act on. Any other exception is a bug.

A slice derives its own errors from one of these kinds. Facts go to ``super().__init__`` by position, because
a durable workflow pickles its errors; ``__str__`` builds the text. ``shared.http.problems`` maps each kind to
an HTTP status.
"""

from typing import ClassVar


class DomainError(Exception):
    code: ClassVar[str]
    retry_after_s: int | None = None  # seconds until a retry can succeed, if known

    @property
    def facts(self) -> dict[str, int | str]:
        """Numbers and names for the client; the problem document contains them."""
        return {}


class Malformed(DomainError):
    """The request is malformed, or its signature or origin is not accepted."""


class TooLarge(DomainError):
    """The body of the request exceeds its limit."""


class TooSlow(DomainError):
    """The body of the request did not arrive in time."""


class Unsupported(DomainError):
    """The body of the request has a media type that is not accepted."""


class Invalid(DomainError):
    """The request is well-formed, but its values are not acceptable."""


class Unauthenticated(DomainError):
    """The request has no valid credentials."""

    is_counted: ClassVar[bool] = True  # against the client address; False: counting would cost more


class NotFound(DomainError):
    """The object does not exist or the caller cannot see it; the response does not reveal which."""


class Forbidden(DomainError):
    """The caller is authenticated and lacks the permission."""


class Conflict(DomainError):
    """The request conflicts with the current state."""


class PreconditionFailed(DomainError):
    """The object has changed since the caller read it."""


class PaymentRequired(DomainError):
    """The account has too few credits."""


class RateLimited(DomainError):
    """The caller has sent too many requests in the time window."""


class Unavailable(DomainError):
    """A temporary failure. This is the only kind that is retried."""


class UpstreamFailed(DomainError):
    """A provider returned an unusable response. A retry would cost the same and return the same."""

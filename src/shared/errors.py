"""The kinds of refusal a caller can act on. Anything else that is raised is a bug.

A slice derives its own errors from one of these kinds. Facts go to ``super().__init__`` by position,
so that an error survives the pickling of a durable workflow; the text is built in ``__str__``. Which
HTTP status a kind gets is decided in ``shared.http.problems``.
"""

from typing import ClassVar


class DomainError(Exception):
    code: ClassVar[str]
    retry_after_s: int | None = None  # when trying again makes sense, if that is known

    @property
    def facts(self) -> dict[str, int | str]:
        """Numbers and names a client may act on; they are shown in the problem."""
        return {}


class Malformed(DomainError):
    """The request is not what it should be, or does not come from whom it should."""


class TooLarge(DomainError):
    """The body of the request exceeds its limit."""


class TooSlow(DomainError):
    """The body of the request did not arrive in time."""


class Unsupported(DomainError):
    """The body of the request has a media type that is not accepted."""


class Invalid(DomainError):
    """The request is understood and cannot be right."""


class Unauthenticated(DomainError):
    """Nobody we know is calling."""

    is_counted: ClassVar[bool] = True  # against the caller's address; False where that would cost more


class NotFound(DomainError):
    """It does not exist, or not for this caller: the two are never told apart."""


class Forbidden(DomainError):
    """The caller is known and may not do this."""


class Conflict(DomainError):
    """It contradicts what has already happened."""


class PreconditionFailed(DomainError):
    """The thing has changed since the caller looked at it."""


class PaymentRequired(DomainError):
    """There are too few credits."""


class RateLimited(DomainError):
    """Too much in too short a time."""


class Unavailable(DomainError):
    """Somebody else's failure; worth another try. The one kind that is retried."""


class UpstreamFailed(DomainError):
    """Somebody else answered, and not with what was asked for. Another try would cost as much and bring
    the same.
    """

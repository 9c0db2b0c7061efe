"""Kinds of errors a caller can act on. Any other exception is a bug.

A slice derives its own errors from one of these kinds. ``shared.http.problems`` maps each kind to an HTTP
status.
"""

from collections.abc import Callable
from functools import partial
from typing import ClassVar


class DomainError(Exception):
    """An expected error. Its ``text`` is formatted with the facts, which are keyword arguments."""

    code: ClassVar[str]
    text: ClassVar[str] = ""
    public: ClassVar[tuple[str, ...]] = ()  # facts that the problem document contains in addition to the text
    retry_after_s: int | None = None  # seconds until a retry can succeed, if known

    def __init__(self, *, retry_after_s: int | None = None, **facts: int | str) -> None:
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s
        self._facts = facts
        self.__dict__.update(facts)  # a class declares the facts that code reads
        super().__init__(self.text.format(**facts, retry_after_s=self.retry_after_s))

    def __reduce__(self) -> tuple[Callable[[], "DomainError"], tuple[()]]:
        """Support pickling, because a durable workflow stores its errors."""
        return partial(type(self), retry_after_s=self.retry_after_s, **self._facts), ()

    @property
    def facts(self) -> dict[str, int | str]:
        return {name: self._facts[name] for name in self.public}


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

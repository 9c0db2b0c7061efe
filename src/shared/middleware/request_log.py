"""Request log: one entry per request, and the routes that are only counted."""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from shared.ids import AccountId


class RequestLogEntry(NamedTuple):
    at_s: float  # seconds since 1970
    method: str
    route: str  # the path template without ids; empty for an unknown route
    status: int
    duration_ms: float
    account_id: AccountId | None
    principal_kind: str | None
    principal_id: UUID | None
    request_id: str
    code: str | None = None  # of the problem document; None for a success


COUNTED_ROUTES = frozenset({"/health"})  # they need no account and have no rate limit


def is_only_counted(entry: RequestLogEntry) -> bool:
    """Return whether clients without an account could fill the request log with such rows."""
    return entry.account_id is None and (entry.code is not None or entry.route in COUNTED_ROUTES)


Record = Callable[[RequestLogEntry], None]
"""Port that stores an entry in the background. It does not block and does not raise."""

"""One data point per request, and which requests are only counted."""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from shared.ids import AccountId


class RequestLogEntry(NamedTuple):
    at_s: float  # since 1970
    method: str
    route: str  # as declared, ids left out; empty when there is none
    status: int
    duration_ms: float
    account_id: AccountId | None
    principal_kind: str | None
    principal_id: UUID | None
    request_id: str
    code: str | None = None  # the problem's; null when there was none


COUNTED_ROUTES = frozenset({"/health"})  # without an account and without a limit


def is_only_counted(point: RequestLogEntry) -> bool:
    """Whether a row per request would let clients without an account fill the request log."""
    return point.account_id is None and (point.code is not None or point.route in COUNTED_ROUTES)


Record = Callable[[RequestLogEntry], None]
"""Takes a point and returns at once. Never fails."""

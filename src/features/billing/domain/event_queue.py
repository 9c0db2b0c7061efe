"""Queued Stripe events, their statuses and their retry policy."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import msgspec

from shared.errors import Conflict, Invalid, NotFound
from shared.ids import AccountId

EventStatus = Literal["pending", "parked", "applied", "ignored", "dead"]

FAILURES_MAX = 12
PARKED_FOR_MAX = timedelta(days=3)
BACKOFF = timedelta(seconds=5)
BACKOFF_MAX = timedelta(hours=1)
JITTER = 0.2  # fraction of the backoff; spreads the retries of events that failed together
RANGE_MAX = timedelta(days=31)


class EventNotFound(NotFound):
    code = "webhook_event_not_found"
    text = "No Stripe event with this id was received."


class RangeInvalid(Invalid):
    code = "replay_range_invalid"
    text = "A range begins before it ends, and is {days_max} days long at the most."


class WaitsForAnotherEvent(Conflict):
    """The event depends on data that another event, or an operator, has yet to add."""

    code = "awaits_another_event"
    text = "Not known here yet: {what}."


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change made by an event, or the reason for making none."""

    what: str
    outcome: str
    facts: dict[str, str | int | None] = {}


class ClaimedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event leased by this worker. ``claim`` is the fencing token: every claim has a new one."""

    id: str
    type: str
    payload: bytes
    claim: UUID
    claimed_at: datetime  # database time
    received_at: datetime
    attempts: int  # including this one
    failures: int


class InboxEvent(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    position: int
    account_id: AccountId | None
    type: str
    api_version: str | None
    created_at: datetime
    received_at: datetime
    status: EventStatus
    due_at: datetime
    attempts: int
    failures: int
    replays: int
    last_error: str | None
    applied_at: datetime | None


class RetryDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Next status and due time of an event that could not be applied."""

    status: Literal["pending", "parked", "dead"]
    error: str
    due_in: timedelta
    failures: int


def retry_decision(
    event: ClaimedEvent,
    error: str,
    *,
    is_counted: bool,
    is_parked: bool,
    random: Callable[[], float],  # from 0 to 1
) -> RetryDecision:
    """Decide on a retry. A failure that is not counted (Stripe did not answer) only lengthens the backoff."""
    failures = event.failures + (1 if is_counted and not is_parked else 0)
    due_in = min(BACKOFF * 2 ** min(event.attempts - 1, 20), BACKOFF_MAX) * (1 + JITTER * random())
    is_too_late = is_parked and event.claimed_at - event.received_at >= PARKED_FOR_MAX
    if failures >= FAILURES_MAX or is_too_late:
        return RetryDecision(status="dead", error=error, due_in=due_in, failures=failures)
    return RetryDecision(
        status="parked" if is_parked else "pending", error=error, due_in=due_in, failures=failures
    )

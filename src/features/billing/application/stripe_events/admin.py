"""Operators' view of the Stripe inbox: list, inspect, replay and backfill events."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from features.billing.application.ports import RawEvent, StripeReader
from features.billing.application.stripe_events.ports import EventFilter, StripeEventStore
from features.billing.domain.errors import BillingNotConfigured
from features.billing.domain.event_queue import (
    RANGE_MAX,
    EventNotFound,
    EventStatus,
    InboxEvent,
    RangeInvalid,
)
from features.billing.domain.stripe_events import ID_PATTERN, read_event
from shared.pagination import Page, decode_position, encode_position

REPLAYS_MAX = 10_000
CHUNK = 100


class OpenedEvent(msgspec.Struct, frozen=True, kw_only=True):
    event: InboxEvent
    effects: list[dict[str, object]]
    payload: bytes


@dataclass(frozen=True, slots=True)
class StripeEventAdmin:
    events: StripeEventStore
    stripe_reader: StripeReader | None  # None: billing is not configured

    async def page(self, only: EventFilter, *, cursor: str | None, limit: int) -> Page[InboxEvent]:
        before = None if cursor is None else decode_position(cursor)
        found = await self.events.page(only, before=before, events_max=limit + 1)
        if len(found) <= limit:
            return Page(found, None)
        return Page(found[:limit], encode_position(found[limit - 1].position))

    async def open(self, event_id: str) -> OpenedEvent:
        found = await self.events.find(event_id) if re.fullmatch(ID_PATTERN, event_id) else None
        if found is None:
            raise EventNotFound
        event, effects, payload = found
        return OpenedEvent(
            event=event, effects=msgspec.json.decode(effects, type=list[dict[str, object]]), payload=payload
        )

    async def replay(self, event_id: str) -> InboxEvent:
        """Requeue the event, whatever its status. Effects are idempotent. Raises EventNotFound."""
        event = await self.events.replay(event_id) if re.fullmatch(ID_PATTERN, event_id) else None
        if event is None:
            raise EventNotFound
        return event

    async def replay_range(
        self,
        since: datetime,
        until: datetime,
        *,
        types: Sequence[str] = (),
        statuses: Sequence[EventStatus] = (),
    ) -> int:
        """Requeue at most 10,000 events, oldest first; return their number. Pending ones are skipped."""
        _check_range(since, until)
        return await self.events.replay_all(
            since=since, until=until, types=types, statuses=statuses, events_max=REPLAYS_MAX
        )

    async def missing(self, since: datetime, until: datetime) -> list[str]:
        """Ids of the events that Stripe has and the inbox lacks."""
        return [event.id async for event in self._missing(since, until)]

    async def fetch_missing(self, since: datetime, until: datetime) -> int:
        """Add the missing events to the inbox; return their number."""
        added = 0
        async for event in self._missing(since, until):
            added += await self.events.add(read_event(event.payload))
        return added

    async def _missing(self, since: datetime, until: datetime) -> AsyncIterator[RawEvent]:
        if self.stripe_reader is None:
            raise BillingNotConfigured
        _check_range(since, until)
        async for chunk in _chunks(self.stripe_reader.events(since=since, until=until)):
            stored = await self.events.stored([event.id for event in chunk])
            for event in chunk:
                if event.id not in stored:
                    yield event


def _check_range(since: datetime, until: datetime) -> None:
    if not since < until <= since + RANGE_MAX:
        raise RangeInvalid(days_max=RANGE_MAX.days)


async def _chunks(events: AsyncIterator[RawEvent]) -> AsyncIterator[list[RawEvent]]:
    chunk: list[RawEvent] = []
    async for event in events:
        chunk.append(event)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk

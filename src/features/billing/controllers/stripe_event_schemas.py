"""Response schemas of the Stripe inbox, for operators."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from features.billing.application.stripe_events.admin import OpenedEvent
from features.billing.domain.event_queue import EventStatus, InboxEvent

EVENT_EXAMPLE = {
    "id": "evt_1QxK2eLkdIwHu7ix",
    "type": "invoice.paid",
    "status": "applied",
    "account_id": "0b9f8a52-6a0e-4d0e-9a52-2f6f3c1f7d11",
    "api_version": "2026-10-28.endive",
    "created_at": "2026-11-01T00:00:00Z",
    "received_at": "2026-11-01T00:00:01Z",
    "due_at": None,
    "attempts": 1,
    "failures": 0,
    "replays": 0,
    "last_error": None,
    "applied_at": "2026-11-01T00:00:02Z",
}
OPENED_EXAMPLE = {
    **EVENT_EXAMPLE,
    "effects": [
        {
            "at": "2026-11-01T00:00:02Z",
            "status": "applied",
            "changes": [
                {
                    "what": "subscription",
                    "outcome": "done",
                    "facts": {
                        "id": "sub_1QxK",
                        "plan_before": "free",
                        "plan_after": "growth",
                        "credits": 250,
                    },
                }
            ],
        }
    ],
    "payload": {"id": "evt_1QxK2eLkdIwHu7ix", "object": "event", "type": "invoice.paid"},
}


class EventResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
    status: EventStatus
    account_id: UUID | None
    api_version: str | None
    created_at: datetime
    received_at: datetime
    due_at: datetime | None
    attempts: int
    failures: int
    replays: int
    last_error: str | None
    applied_at: datetime | None


class EventsResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[EventResponse]
    next_cursor: str | None


class OpenedResponse(EventResponse, frozen=True, kw_only=True):
    effects: list[dict[str, Any]]
    payload: dict[str, Any]


class ReplaysResponse(msgspec.Struct, frozen=True, kw_only=True):
    replayed: int
    fetched: int


def event_out(event: InboxEvent) -> EventResponse:
    return EventResponse(**_fields(event))


def opened_out(opened: OpenedEvent) -> OpenedResponse:
    return OpenedResponse(
        **_fields(opened.event),
        effects=opened.effects,
        payload=msgspec.json.decode(opened.payload, type=dict[str, Any]),
    )


def _fields(event: InboxEvent) -> dict[str, Any]:
    """``due_at`` has no meaning for an event that is not pending or parked, so it is hidden."""
    fields = {name: getattr(event, name) for name in EventResponse.__struct_fields__}
    return fields if event.status in ("pending", "parked") else {**fields, "due_at": None}

"""Operators' routes for the Stripe inbox."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromQuery, PathParameter, QueryParameter

from features.billing.application.stripe_events.admin import StripeEventAdmin
from features.billing.application.stripe_events.ports import EventFilter
from features.billing.controllers.stripe_event_schemas import (
    EVENT_EXAMPLE,
    OPENED_EXAMPLE,
    EventResponse,
    EventsResponse,
    OpenedResponse,
    ReplaysResponse,
    event_out,
    opened_out,
)
from features.billing.domain.event_queue import EventStatus
from features.billing.domain.stripe_events import ID_PATTERN, TYPE_PATTERN
from shared.http.pagination_parameters import Limit, PositionCursor
from shared.http.problems import problem_responses
from shared.http.route_policy import OPERATORS_ONLY
from shared.ids import AccountId
from shared.timestamps import as_utc

At = Annotated[
    datetime | None, QueryParameter(description="An instant with its offset, as 2026-11-01T00:00:00Z.")
]
# The pattern only documents the schema: a malformed id gets 404 like any unknown id.
EventId = Annotated[str, PathParameter(schema_extra={"pattern": ID_PATTERN})]
Type = Annotated[
    str | None, QueryParameter(pattern=TYPE_PATTERN, max_length=255, description="As `invoice.paid`.")
]
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
REPLAYS_EXAMPLE = {"since": "2026-11-01T00:00:00Z", "until": "2026-11-02T00:00:00Z", "statuses": ["dead"]}


class ReplaysRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    since: Instant
    until: Instant
    types: Annotated[
        list[Annotated[str, msgspec.Meta(pattern=TYPE_PATTERN)]], msgspec.Meta(max_length=50)
    ] = []
    statuses: Annotated[list[EventStatus], msgspec.Meta(max_length=5)] = []
    missing: bool = False


ReplaysBody = Annotated[ReplaysRequest, BodyKwarg(examples=[Example(value=REPLAYS_EXAMPLE)])]


def _shows(kind: type[EventResponse], description: str, example: Mapping[str, object]) -> ResponseSpec:
    return ResponseSpec(kind, description=description, examples=[Example(value=example)])


class InboxController(Controller):
    path = "/v1/admin/webhooks"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @get(
        "/events",
        operation_id="listWebhookEvents",
        summary="List events of Stripe's",
        responses={
            200: ResponseSpec(
                EventsResponse,
                description="A page",
                examples=[Example(value={"items": [EVENT_EXAMPLE], "next_cursor": None})],
            )
        },
    )
    async def page(
        self,
        inbox: NamedDependency[StripeEventAdmin],
        cursor: PositionCursor = None,
        limit: Limit = 50,
        status: FromQuery[EventStatus | None] = None,
        type: Type = None,  # noqa: A002  the parameter's name
        account_id: FromQuery[UUID | None] = None,
        since: At = None,
        until: At = None,
    ) -> EventsResponse:
        """What Stripe told us, the latest to arrive first. `pending` waits for its turn, `parked` for
        something that another event brings, `dead` for a person. `since` is included, `until` is not; both
        are about when Stripe made the event.
        """
        only = EventFilter(
            status=status,
            type=type,
            account_id=None if account_id is None else AccountId(account_id),
            since=as_utc(since),
            until=as_utc(until),
        )
        page = await inbox.page(only, cursor=cursor, limit=limit)
        return EventsResponse(items=[event_out(event) for event in page.items], next_cursor=page.next_cursor)

    @get(
        "/events/{event_id:str}",
        operation_id="getWebhookEvent",
        summary="Get an event of Stripe's",
        responses={200: _shows(OpenedResponse, "The event, what it changed, and what came", OPENED_EXAMPLE)},
    )
    async def read(self, event_id: EventId, inbox: NamedDependency[StripeEventAdmin]) -> OpenedResponse:
        """One event. `effects` has an entry for each time that it was applied."""
        return opened_out(await inbox.open(event_id))

    @post(
        "/events/{event_id:str}/replay",
        operation_id="replayWebhookEvent",
        summary="Replay an event of Stripe's",
        status_code=202,
        responses={202: _shows(EventResponse, "In line again", {**EVENT_EXAMPLE, "status": "pending"})},
    )
    async def replay(self, event_id: EventId, inbox: NamedDependency[StripeEventAdmin]) -> EventResponse:
        """Work on an event once more, whatever became of it. What it has changed already it does not change
        again: how things stand at Stripe now is what counts.
        """
        return event_out(await inbox.replay(event_id))

    @post(
        "/replays",
        operation_id="replayWebhookEvents",
        summary="Replay events of Stripe's",
        status_code=202,
        responses={
            202: ResponseSpec(
                ReplaysResponse,
                description="How many are in line again, and how many were fetched from Stripe",
                examples=[Example(value={"replayed": 3, "fetched": 0})],
            ),
            **problem_responses(502),
        },
    )
    async def replay_range(
        self, data: ReplaysBody, inbox: NamedDependency[StripeEventAdmin]
    ) -> ReplaysResponse:
        """Work on the events of a range once more, 31 days and 10,000 events at the most: those of the
        `types` and `statuses` that are named, or all. With `missing`, only those that Stripe has and we never
        got; Stripe keeps events for 30 days.
        """
        since, until = as_utc(data.since), as_utc(data.until)
        assert since is not None
        assert until is not None
        if data.missing:
            return ReplaysResponse(replayed=0, fetched=await inbox.fetch_missing(since, until))
        replayed = await inbox.replay_range(since, until, types=data.types, statuses=data.statuses)
        return ReplaysResponse(replayed=replayed, fetched=0)

"""Routes for Stripe events: reception by webhook, and the inbox for operators."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery, JSONBody, PathParameter, QueryParameter

from features.billing.application.stripe_events.admin import StripeEventAdmin
from features.billing.application.stripe_events.ports import EventFilter
from features.billing.application.stripe_events.receive import StripeEventReceiver
from features.billing.domain.event_queue import EventStatus, InboxEvent
from features.billing.domain.stripe_events import ID_PATTERN, TYPE_PATTERN
from shared.errors import Malformed
from shared.http.parameters import Limit, PositionCursor, RequestBody, Time, TimeField
from shared.http.responses import problems, struct_from
from shared.http.route_policy import OPERATORS_ONLY, PUBLIC, UNCOUNTED
from shared.ids import AccountId
from shared.middleware.rate_limits import FailureRateLimit
from shared.pagination import Page
from shared.timestamps import as_utc

PATH = "/v1/webhooks/stripe"
SIGNATURE = b"stripe-signature"

# The pattern only documents the schema: a malformed id gets 404 like any unknown id.
EventId = Annotated[str, PathParameter(schema_extra={"pattern": ID_PATTERN})]
Type = Annotated[
    str | None,
    QueryParameter(pattern=TYPE_PATTERN, max_length=255, description="For example `invoice.paid`."),
]
Types = Annotated[list[Annotated[str, msgspec.Meta(pattern=TYPE_PATTERN)]], msgspec.Meta(max_length=50)]
Statuses = Annotated[list[EventStatus], msgspec.Meta(max_length=5)]


class ReplaysRequest(RequestBody, frozen=True, kw_only=True):
    since: TimeField
    until: TimeField
    types: Types = msgspec.field(default_factory=list[str])
    statuses: Statuses = msgspec.field(default_factory=list[EventStatus])
    missing: bool = False


class ReceivedResponse(msgspec.Struct, frozen=True, kw_only=True):
    received: bool
    duplicate: bool


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


class EventDetailResponse(EventResponse, frozen=True, kw_only=True):
    effects: list[dict[str, Any]]
    payload: dict[str, Any]


class ReplaysResponse(msgspec.Struct, frozen=True, kw_only=True):
    replayed: int
    fetched: int


def _event_response(event: InboxEvent) -> EventResponse:
    return struct_from(EventResponse, event, due_at=_due_at(event))


def _due_at(event: InboxEvent) -> datetime | None:
    return event.due_at if event.status in ("pending", "parked") else None


class StripeWebhookController(Controller):
    path = PATH
    tags = ("Webhooks",)
    security = ({},)  # authenticated by Stripe's signature

    @post("/", status_code=200, opt={**PUBLIC, **UNCOUNTED}, responses=problems(400, 503))
    async def receive_stripe_event(
        self,
        request: Request[Any, Any, Any],
        receiver: NamedDependency[StripeEventReceiver],
        failure_limit: NamedDependency[FailureRateLimit],
    ) -> ReceivedResponse:
        """Receive a Stripe event; for Stripe only.

        The body is the event as JSON, with its `Stripe-Signature`, which is valid for five minutes. A
        success means that the event is stored, so Stripe need not send it again. Events can arrive twice and
        in any order.
        """
        signatures = [value for name, value in request.scope["headers"] if name == SIGNATURE]
        try:
            is_new = await receiver.receive(await request.body(), b",".join(signatures))
        except Malformed:
            await failure_limit.count(request.scope, "stripe")
            raise
        return ReceivedResponse(received=True, duplicate=not is_new)


class InboxController(Controller):
    path = "/v1/admin/webhooks"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @get("/events")
    async def list_webhook_events(
        self,
        inbox: NamedDependency[StripeEventAdmin],
        cursor: PositionCursor = None,
        limit: Limit = 50,
        status: FromQuery[EventStatus | None] = None,
        type: Type = None,  # noqa: A002  the parameter's name
        account_id: FromQuery[UUID | None] = None,
        since: Time = None,
        until: Time = None,
    ) -> Page[EventResponse]:
        """List Stripe events, last received first.

        A `pending` event waits to be processed, a `parked` event waits for another event, a `dead` event
        waits for an operator. `since` (included) and `until` (excluded) apply to the time at which Stripe
        created the event.
        """
        event_filter = EventFilter(
            status=status,
            type=type,
            account_id=None if account_id is None else AccountId(account_id),
            since=as_utc(since),
            until=as_utc(until),
        )
        page = await inbox.page(event_filter, cursor=cursor, limit=limit)
        return page.map(_event_response)

    @get("/events/{event_id:str}")
    async def get_webhook_event(
        self, event_id: EventId, inbox: NamedDependency[StripeEventAdmin]
    ) -> EventDetailResponse:
        """Get a Stripe event with its payload and its effects.

        `effects` has one entry for each time that the event was applied.
        """
        opened = await inbox.open(event_id)
        return struct_from(
            EventDetailResponse,
            opened.event,
            due_at=_due_at(opened.event),
            effects=opened.effects,
            payload=msgspec.json.decode(opened.payload, type=dict[str, Any]),
        )

    @post("/events/{event_id:str}/replay", status_code=202)
    async def replay_webhook_event(
        self, event_id: EventId, inbox: NamedDependency[StripeEventAdmin]
    ) -> EventResponse:
        """Process a Stripe event again, regardless of its status.

        Processing uses the current state at Stripe, so an effect that already happened does not happen
        again.
        """
        return _event_response(await inbox.replay(event_id))

    @post("/replays", status_code=202, responses=problems(502))
    async def replay_webhook_events(
        self, data: JSONBody[ReplaysRequest], inbox: NamedDependency[StripeEventAdmin]
    ) -> ReplaysResponse:
        """Process the Stripe events of a time range again.

        The range has at most 31 days and 10,000 events. `types` and `statuses` select events; by default all
        are processed. With `missing`, only events that Stripe has and that were never received are fetched
        and processed; Stripe stores events for 30 days.
        """
        since, until = as_utc(data.since), as_utc(data.until)
        assert since is not None
        assert until is not None
        if data.missing:
            return ReplaysResponse(replayed=0, fetched=await inbox.fetch_missing(since, until))
        replayed = await inbox.replay_range(since, until, types=data.types, statuses=data.statuses)
        return ReplaysResponse(replayed=replayed, fetched=0)

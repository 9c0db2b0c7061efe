"""Stripe's events. An event only names the changed object; its current state is fetched from Stripe."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

import msgspec

from shared.errors import Malformed
from shared.middleware.json_depth import depth_exceeds

ID_PATTERN = "^[A-Za-z0-9_]{1,255}$"
TYPE_PATTERN = "^[a-z0-9_.]{1,255}$"
JSON_DEPTH_MAX = 64

# Kind of the event's object by event type. Events of other types are stored and ignored.
Subject = Literal["checkout", "subscription", "invoice", "charge", "refund", "dispute"]
SUBJECTS: dict[str, Subject] = {
    "checkout.session.completed": "checkout",
    "checkout.session.async_payment_succeeded": "checkout",
    "checkout.session.async_payment_failed": "checkout",
    "checkout.session.expired": "checkout",
    "customer.subscription.created": "subscription",
    "customer.subscription.updated": "subscription",
    "customer.subscription.deleted": "subscription",
    "customer.subscription.paused": "subscription",
    "customer.subscription.resumed": "subscription",
    "subscription_schedule.created": "subscription",
    "subscription_schedule.updated": "subscription",
    "subscription_schedule.released": "subscription",
    "subscription_schedule.canceled": "subscription",
    "subscription_schedule.completed": "subscription",
    "subscription_schedule.aborted": "subscription",
    "subscription_schedule.expiring": "subscription",
    "invoice.paid": "invoice",
    "invoice.payment_succeeded": "invoice",
    "invoice.payment_failed": "invoice",
    "invoice.finalized": "invoice",
    "invoice.voided": "invoice",
    "invoice.marked_uncollectible": "invoice",
    "charge.refunded": "charge",
    "charge.refund.updated": "refund",
    "refund.created": "refund",
    "refund.updated": "refund",
    "refund.failed": "refund",
    "charge.dispute.created": "dispute",
    "charge.dispute.updated": "dispute",
    "charge.dispute.closed": "dispute",
}
PAYMENT_FAILED = "checkout.session.async_payment_failed"


class EventMalformed(Malformed):
    code = "event_malformed"
    text = "The body is no event of Stripe's."


class StripeEvent(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
    api_version: str | None
    created_at: datetime
    payload: bytes  # raw body


class _Data(msgspec.Struct):
    object: dict[str, Any]


class _Document(msgspec.Struct, tag_field="object", tag="event"):
    id: Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]
    type: Annotated[str, msgspec.Meta(pattern=TYPE_PATTERN)]
    created: Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799)]  # until the year 9999
    data: _Data
    api_version: Annotated[str, msgspec.Meta(pattern="^[!-~]{1,100}$")] | None = None
    livemode: bool = False
    account: str | None = None  # a Stripe account connected to ours


def read_event(payload: bytes) -> StripeEvent:
    """Raises EventMalformed."""
    document = _document(payload)
    return StripeEvent(
        id=document.id,
        type=document.type,
        api_version=document.api_version,
        created_at=datetime.fromtimestamp(document.created, UTC),
        payload=payload,
    )


class StripeEventContent(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of an event that its processing needs."""

    type: str
    subject: Subject | None  # None: the event is ignored
    subject_id: str  # empty: the event has no id
    charge_id: str | None  # set for a refund
    is_live: bool
    is_for_others: bool


def content_of(payload: bytes) -> StripeEventContent:
    document = _document(payload)
    thing = document.data.object
    subject_id = _id_in(thing, "id")
    if document.type.startswith("subscription_schedule."):
        # A released schedule names its subscription in another field.
        subject_id = _id_in(thing, "subscription") or _id_in(thing, "released_subscription")
    return StripeEventContent(
        type=document.type,
        subject=SUBJECTS.get(document.type),
        subject_id=subject_id or "",
        charge_id=_id_in(thing, "charge"),
        is_live=document.livemode,
        is_for_others=document.account is not None,
    )


def _id_in(thing: dict[str, Any], field: str) -> str | None:
    """The field contains an id or, expanded, the object itself."""
    value = thing.get(field)
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("id")
    return value if isinstance(value, str) and value else None


def _document(payload: bytes) -> _Document:
    """Decode the whole payload, so that every stored event can be displayed. Raises EventMalformed."""
    if depth_exceeds(payload, JSON_DEPTH_MAX):
        raise EventMalformed
    try:
        return msgspec.convert(msgspec.json.decode(payload), _Document)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise EventMalformed from None

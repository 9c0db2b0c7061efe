"""Delivery of one message to one endpoint, with its retry schedule."""

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Literal, NewType
from uuid import UUID

import msgspec

from features.webhooks.domain.endpoint import DisabledReason, EndpointId
from shared.ids import AccountId

DeliveryId = NewType("DeliveryId", UUID)
DeliveryStatus = Literal["pending", "delivered", "failed", "dead"]

# Delays after the first failed attempt, the second, and so on; after the last retry the delivery is dead.
RETRY_AFTER = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=10),
)
RETRY_AFTER_MAX = timedelta(days=1)  # upper limit of a receiver's Retry-After
FAILING_MAX = timedelta(days=5)  # the endpoint is disabled after this time without one success


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    account_id: AccountId
    id: DeliveryId
    message_id: UUID
    endpoint_id: EndpointId
    type: str
    status: DeliveryStatus
    attempts: int
    due_at: datetime
    claimed_until: datetime | None
    last_attempt_at: datetime | None
    last_status: int | None
    last_error: str | None
    last_duration_ms: int | None
    delivered_at: datetime | None
    created_at: datetime


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    at: datetime
    http_status: int | None
    error: str | None
    duration_ms: int


class DeliveryWithAttempts(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery with its body and all its attempts, latest first."""

    delivery: Delivery
    body: msgspec.Raw
    attempts: tuple[Attempt, ...]


class DeliveryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one attempt. ``error`` is the code of the failure if the receiver sent no response."""

    http_status: int | None = None
    error: str | None = None
    retry_after_s: int | None = None
    duration_ms: int = 0


class DeliveryDecision(msgspec.Struct, frozen=True, kw_only=True):
    status: DeliveryStatus
    retry_in: timedelta | None = None
    disables: DisabledReason | None = None  # reason to disable the endpoint as well


class ClaimedDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A due delivery, leased to one worker."""

    account_id: AccountId
    id: DeliveryId
    message_id: UUID
    endpoint_id: EndpointId
    type: str
    data: str  # JSON text
    happened_at: datetime
    url: str
    secret_version: int
    rotated_at: datetime | None
    failures: int
    failing_since: datetime | None
    claimed_until: datetime
    claimed_at: datetime

    @property
    def body(self) -> bytes:
        return notice_body(self.type, self.happened_at, self.data)

    def decide(self, response: DeliveryResponse) -> DeliveryDecision:
        if (
            response.http_status is not None
            and HTTPStatus.OK <= response.http_status < HTTPStatus.MULTIPLE_CHOICES
        ):
            return DeliveryDecision(status="delivered")
        if response.http_status == HTTPStatus.GONE:
            return DeliveryDecision(status="failed", disables="gone")
        if self.failing_since is not None and self.claimed_at - self.failing_since > FAILING_MAX:
            return DeliveryDecision(status="failed", disables="failing")
        if self.failures >= len(RETRY_AFTER):
            return DeliveryDecision(status="dead")
        asked_for = min(timedelta(seconds=response.retry_after_s or 0), RETRY_AFTER_MAX)
        return DeliveryDecision(status="pending", retry_in=max(RETRY_AFTER[self.failures], asked_for))


def notice_body(notice_type: str, happened_at: datetime, data: str) -> bytes:
    """Returns the same bytes for every attempt."""
    return msgspec.json.encode(
        {"type": notice_type, "timestamp": happened_at, "data": msgspec.Raw(data.encode())}
    )

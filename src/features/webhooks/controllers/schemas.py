"""Request and response schemas of the webhook routes."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from features.webhooks.domain.delivery import Attempt, Delivery, DeliveryStatus, DeliveryWithAttempts
from features.webhooks.domain.endpoint import (
    DESCRIPTION_LENGTH_MAX,
    URL_LENGTH_MAX,
    DisabledReason,
    Endpoint,
    EndpointContent,
    EndpointStatus,
    NoticeType,
)
from features.webhooks.domain.signature import webhook_id
from shared.http.parameters import RequestBody, TimeField, text_field
from shared.http.responses import struct_from

URL_PATTERN = r"^https?://[A-Za-z0-9.\[\]:-]+([/?][!-~]*)?$"
LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*$"
URL_TEXT = "A public https URL without user or password, on port 443, 8443, 80 or 8080."

Url = Annotated[str, text_field(URL_LENGTH_MAX, URL_PATTERN, URL_TEXT)]
Types = Annotated[list[NoticeType], msgspec.Meta(max_length=20, description="An empty list: all types.")]
Description = Annotated[
    str, text_field(DESCRIPTION_LENGTH_MAX, LINE_PATTERN, "For your own use.", length_min=0)
]


class WebhookEndpointRequest(RequestBody, frozen=True, kw_only=True):
    url: Url
    types: Types = msgspec.field(default_factory=list[NoticeType])
    description: Description | None = None

    @property
    def content(self) -> EndpointContent:
        return EndpointContent(url=self.url, types=tuple(self.types), description=self.description)


class WebhookEndpointPatch(RequestBody, frozen=True, kw_only=True):
    """Omitted fields keep their values."""

    url: Url | UnsetType = UNSET
    types: Types | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET


class WebhookReplaysRequest(RequestBody, frozen=True, kw_only=True):
    since: Annotated[TimeField, msgspec.Meta(description="Start of the range, included.")]
    until: Annotated[TimeField, msgspec.Meta(description="End of the range, excluded.")] | None = None


class WebhookEndpointResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    url: str
    types: tuple[str, ...]
    description: str | None
    status: EndpointStatus
    disabled_reason: DisabledReason | None
    failing_since: datetime | None
    secret_version: int
    rotated_at: datetime | None
    created_by: str
    created_at: datetime
    updated_at: datetime


class NewWebhookEndpointResponse(WebhookEndpointResponse, frozen=True, kw_only=True):
    secret: str


class WebhookSecretResponse(msgspec.Struct, frozen=True, kw_only=True):
    endpoint_id: UUID
    secret: str
    secret_version: int
    rotated_at: datetime | None


class WebhookDeliveryResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    webhook_id: str
    endpoint_id: UUID
    type: str
    status: DeliveryStatus
    attempts: int
    next_attempt_at: datetime | None
    last_attempt_at: datetime | None
    last_status: int | None
    last_error: str | None
    last_duration_ms: int | None
    delivered_at: datetime | None
    created_at: datetime


class WebhookDeliveryDetailResponse(WebhookDeliveryResponse, frozen=True, kw_only=True):
    body: dict[str, Any]
    attempt_log: tuple[Attempt, ...]


class WebhookReplaysResponse(msgspec.Struct, frozen=True, kw_only=True):
    deliveries_count: int


def endpoint_response(endpoint: Endpoint) -> WebhookEndpointResponse:
    return struct_from(WebhookEndpointResponse, endpoint)


def delivery_response(delivery: Delivery) -> WebhookDeliveryResponse:
    return struct_from(WebhookDeliveryResponse, delivery, **_computed(delivery))


def delivery_detail_response(stored: DeliveryWithAttempts) -> WebhookDeliveryDetailResponse:
    return struct_from(
        WebhookDeliveryDetailResponse,
        stored.delivery,
        **_computed(stored.delivery),
        body=msgspec.json.decode(stored.body),
        attempt_log=stored.attempts,
    )


def _computed(delivery: Delivery) -> dict[str, object]:
    is_pending = delivery.status == "pending"
    return {
        "webhook_id": webhook_id(delivery.message_id),
        "next_attempt_at": delivery.due_at if is_pending else None,
    }

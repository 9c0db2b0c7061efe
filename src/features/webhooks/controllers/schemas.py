"""Response schemas of the webhook routes."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from features.webhooks.controllers.request_schemas import ENDPOINT_BODY_EXAMPLE
from features.webhooks.domain.delivery import Delivery, DeliveryStatus, DeliveryWithAttempts
from features.webhooks.domain.endpoint import DisabledReason, Endpoint, EndpointStatus
from features.webhooks.domain.signature import webhook_id


class WebhookEndpointResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    url: str
    types: list[str]
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


class WebhookEndpointsResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[WebhookEndpointResponse]
    next_cursor: str | None


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


class WebhookAttemptResponse(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    at: datetime
    http_status: int | None
    error: str | None
    duration_ms: int


class WebhookDeliveryDetailResponse(WebhookDeliveryResponse, frozen=True, kw_only=True):
    body: dict[str, Any]
    attempt_log: list[WebhookAttemptResponse]


class WebhookDeliveriesResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[WebhookDeliveryResponse]
    next_cursor: str | None


class WebhookReplaysResponse(msgspec.Struct, frozen=True, kw_only=True):
    deliveries_count: int


def _fields(endpoint: Endpoint) -> dict[str, Any]:
    fields = {name: getattr(endpoint, name) for name in WebhookEndpointResponse.__struct_fields__}
    return {**fields, "types": list(endpoint.types)}


def endpoint_out(endpoint: Endpoint) -> WebhookEndpointResponse:
    return WebhookEndpointResponse(**_fields(endpoint))


def new_endpoint_out(endpoint: Endpoint, secret: str) -> NewWebhookEndpointResponse:
    return NewWebhookEndpointResponse(**_fields(endpoint), secret=secret)


def secret_out(endpoint: Endpoint, secret: str) -> WebhookSecretResponse:
    return WebhookSecretResponse(
        endpoint_id=endpoint.id,
        secret=secret,
        secret_version=endpoint.secret_version,
        rotated_at=endpoint.rotated_at,
    )


def _told(delivery: Delivery) -> dict[str, Any]:
    taken = msgspec.structs.asdict(delivery)
    taken["webhook_id"] = webhook_id(delivery.message_id)
    taken["next_attempt_at"] = delivery.due_at if delivery.status == "pending" else None
    return {name: taken[name] for name in WebhookDeliveryResponse.__struct_fields__}


def delivery_out(delivery: Delivery) -> WebhookDeliveryResponse:
    return WebhookDeliveryResponse(**_told(delivery))


def known_delivery_out(known: DeliveryWithAttempts) -> WebhookDeliveryDetailResponse:
    return WebhookDeliveryDetailResponse(
        **_told(known.delivery),
        body=msgspec.json.decode(known.body),
        attempt_log=[WebhookAttemptResponse(**msgspec.structs.asdict(attempt)) for attempt in known.attempts],
    )


ENDPOINT_EXAMPLE: dict[str, Any] = {
    "id": "1f0b7c52-8b0e-4f4e-9d0e-6a1f2b3c4d5e",
    **ENDPOINT_BODY_EXAMPLE,
    "status": "active",
    "disabled_reason": None,
    "failing_since": None,
    "secret_version": 1,
    "rotated_at": None,
    "created_by": "user:4c1d8f0a-52b7-4e0e-8a0f-6b1f2c3d4e5f",
    "created_at": "2026-11-01T09:30:00Z",
    "updated_at": "2026-11-01T09:30:00Z",
}
SECRET_EXAMPLE = "whsec_<44 letters, the key in base64>"  # noqa: S105
DELIVERY_EXAMPLE: dict[str, Any] = {
    "id": "c0a4f5b6-2f5b-4a83-8d7e-1b2c3d4e5f60",
    "webhook_id": "msg_5b1c9d2e7f3a4b6c8d0e1f2a3b4c5d6e",
    "endpoint_id": ENDPOINT_EXAMPLE["id"],
    "type": "run.completed",
    "status": "delivered",
    "attempts": 2,
    "next_attempt_at": None,
    "last_attempt_at": "2026-11-02T16:05:06Z",
    "last_status": 204,
    "last_error": None,
    "last_duration_ms": 140,
    "delivered_at": "2026-11-02T16:05:06Z",
    "created_at": "2026-11-02T16:05:00Z",
}
DELIVERY_DETAIL_EXAMPLE = {
    **DELIVERY_EXAMPLE,
    "body": {
        "type": "run.completed",
        "timestamp": "2026-11-02T16:05:00Z",
        "data": {
            "run_id": "0f8f6a3e-7c1b-4b8e-9d55-2a7d3c1e9b10",
            "kind": "deep_analysis",
            "status": "completed",
            "credits_charged": 5,
        },
    },
    "attempt_log": [
        {
            "number": 2,
            "at": "2026-11-02T16:05:06Z",
            "http_status": 204,
            "error": None,
            "duration_ms": 140,
        },
        {
            "number": 1,
            "at": "2026-11-02T16:05:01Z",
            "http_status": None,
            "error": "connection_failed",
            "duration_ms": 31,
        },
    ],
}

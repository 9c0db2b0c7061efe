from typing import Any
from uuid import UUID

from litestar import Controller, Request, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath, FromQuery

from features.notices.application.deliveries import Deliveries
from features.notices.application.endpoints import Endpoints
from features.notices.application.ports import DeliveryFilter
from features.notices.controllers.answers import (
    DELIVERY_DETAIL_EXAMPLE,
    DELIVERY_EXAMPLE,
    WebhookDeliveriesOut,
    WebhookDeliveryDetailOut,
    WebhookDeliveryOut,
    WebhookReplaysOut,
    delivery_out,
    known_delivery_out,
)
from features.notices.controllers.bodies import ReplaysBody
from features.notices.controllers.endpoints import PATH
from features.notices.domain.delivery import DeliveryId, DeliveryStatus
from features.notices.domain.endpoint import EndpointId
from shared.caller import Caller
from shared.instants import as_utc
from shared.middleware.access import needs
from shared.middleware.idempotency import effect_id
from shared.middleware.parameters import Cursor, Limit
from shared.middleware.problems import refusals

Known = NamedDependency[Deliveries]
Asked = Request[Caller, Any, Any]


class DeliveriesController(Controller):
    path = "/v1/webhooks/deliveries"
    tags = ("Webhooks",)
    opt = needs("webhooks:read")

    @get(
        "/",
        operation_id="listWebhookDeliveries",
        summary="Deliveries",
        responses={
            200: ResponseSpec(
                WebhookDeliveriesOut,
                description="A page",
                examples=[Example(value={"items": [DELIVERY_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def page(
        self,
        request: Asked,
        webhook_deliveries: Known,
        cursor: Cursor = None,
        limit: Limit = 50,
        endpoint_id: FromQuery[UUID | None] = None,
        status: FromQuery[DeliveryStatus | None] = None,
    ) -> WebhookDeliveriesOut:
        """What was sent, or is to be, newest first; kept for 30 days.

        `pending` waits for its first or next attempt, `failed` did not arrive before its endpoint was
        disabled, `dead` was tried as often as it is.
        """
        only = DeliveryFilter(
            endpoint_id=None if endpoint_id is None else EndpointId(endpoint_id), status=status
        )
        page = await webhook_deliveries.page(request.user, only, cursor=cursor, limit=limit)
        return WebhookDeliveriesOut(
            items=[delivery_out(delivery) for delivery in page.items], next_cursor=page.next_cursor
        )

    @get(
        "/{delivery_id:uuid}",
        operation_id="getWebhookDelivery",
        summary="A delivery",
        responses={
            200: ResponseSpec(
                WebhookDeliveryDetailOut,
                description="The delivery, with its attempts",
                examples=[Example(value=DELIVERY_DETAIL_EXAMPLE)],
            ),
        },
    )
    async def read(
        self, request: Asked, delivery_id: FromPath[UUID], webhook_deliveries: Known
    ) -> WebhookDeliveryDetailOut:
        """One delivery: what is sent, and every attempt, the latest first. `error` says why there was no
        answer.
        """
        return known_delivery_out(await webhook_deliveries.get(request.user, DeliveryId(delivery_id)))

    @post(
        "/{delivery_id:uuid}/replay",
        operation_id="replayWebhookDelivery",
        summary="Send again",
        status_code=202,
        opt=needs("webhooks:manage"),
        responses={
            202: ResponseSpec(
                WebhookDeliveryOut,
                description="The delivery, which is made in a moment",
                examples=[Example(value={**DELIVERY_EXAMPLE, "status": "pending"})],
            ),
            **refusals(409),
        },
    )
    async def replay(
        self, request: Asked, delivery_id: FromPath[UUID], webhook_deliveries: Known
    ) -> WebhookDeliveryOut:
        """Send it again under the same `webhook-id`, also one that arrived. One that waits goes now."""
        return delivery_out(await webhook_deliveries.replay(request.user, DeliveryId(delivery_id)))


class EndpointDeliveriesController(Controller):
    """Of one endpoint."""

    path = PATH
    tags = ("Webhooks",)
    opt = needs("webhooks:manage")

    @post(
        "/{endpoint_id:uuid}/test",
        operation_id="testWebhookEndpoint",
        summary="Send a test",
        status_code=202,
        responses={
            202: ResponseSpec(
                WebhookDeliveryOut,
                description="The delivery, which is made in a moment",
                examples=[Example(value={**DELIVERY_EXAMPLE, "type": "endpoint.test", "status": "pending"})],
            ),
            **refusals(409),
        },
    )
    async def test(
        self, request: Asked, endpoint_id: FromPath[UUID], webhook_endpoints: NamedDependency[Endpoints]
    ) -> WebhookDeliveryOut:
        """Send a notice of type `endpoint.test` to this endpoint alone, whatever types it takes."""
        notice_id = effect_id(request.scope)
        return delivery_out(await webhook_endpoints.test(request.user, EndpointId(endpoint_id), notice_id))

    @post(
        "/{endpoint_id:uuid}/replays",
        operation_id="replayFailedWebhooks",
        summary="Send again what failed",
        status_code=202,
        responses={
            202: ResponseSpec(
                WebhookReplaysOut,
                description="How many deliveries wait again",
                examples=[Example(value={"deliveries_count": 12})],
            ),
            **refusals(409),
        },
    )
    async def replay(
        self,
        request: Asked,
        endpoint_id: FromPath[UUID],
        data: ReplaysBody,
        webhook_deliveries: Known,
    ) -> WebhookReplaysOut:
        """Send again everything from `since` on, and before `until`, that failed or is dead, each under its
        own `webhook-id`.
        """
        since = as_utc(data.since)
        assert since is not None
        count = await webhook_deliveries.replay_failed(
            request.user, EndpointId(endpoint_id), since=since, until=as_utc(data.until)
        )
        return WebhookReplaysOut(deliveries_count=count)

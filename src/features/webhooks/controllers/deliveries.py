from typing import Any
from uuid import UUID

from litestar import Controller, Request, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath, FromQuery

from features.webhooks.application.deliveries import Deliveries
from features.webhooks.application.endpoints import Endpoints
from features.webhooks.application.ports import DeliveryFilter
from features.webhooks.controllers.endpoints import PATH
from features.webhooks.controllers.request_schemas import ReplaysBody
from features.webhooks.controllers.schemas import (
    DELIVERY_DETAIL_EXAMPLE,
    DELIVERY_EXAMPLE,
    WebhookDeliveriesResponse,
    WebhookDeliveryDetailResponse,
    WebhookDeliveryResponse,
    WebhookReplaysResponse,
    delivery_out,
    known_delivery_out,
)
from features.webhooks.domain.delivery import DeliveryId, DeliveryStatus
from features.webhooks.domain.endpoint import EndpointId
from shared.caller import Caller
from shared.http.pagination_parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.route_policy import needs
from shared.middleware.idempotency import effect_id
from shared.timestamps import as_utc

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
                WebhookDeliveriesResponse,
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
    ) -> WebhookDeliveriesResponse:
        """What was sent, or is to be, newest first; kept for 30 days.

        `pending` waits for its first or next attempt, `failed` did not arrive before its endpoint was
        disabled, `dead` was tried as often as it is.
        """
        only = DeliveryFilter(
            endpoint_id=None if endpoint_id is None else EndpointId(endpoint_id), status=status
        )
        page = await webhook_deliveries.page(request.user, only, cursor=cursor, limit=limit)
        return WebhookDeliveriesResponse(
            items=[delivery_out(delivery) for delivery in page.items], next_cursor=page.next_cursor
        )

    @get(
        "/{delivery_id:uuid}",
        operation_id="getWebhookDelivery",
        summary="A delivery",
        responses={
            200: ResponseSpec(
                WebhookDeliveryDetailResponse,
                description="The delivery, with its attempts",
                examples=[Example(value=DELIVERY_DETAIL_EXAMPLE)],
            ),
        },
    )
    async def read(
        self, request: Asked, delivery_id: FromPath[UUID], webhook_deliveries: Known
    ) -> WebhookDeliveryDetailResponse:
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
                WebhookDeliveryResponse,
                description="The delivery, which is made in a moment",
                examples=[Example(value={**DELIVERY_EXAMPLE, "status": "pending"})],
            ),
            **problem_responses(409),
        },
    )
    async def replay(
        self, request: Asked, delivery_id: FromPath[UUID], webhook_deliveries: Known
    ) -> WebhookDeliveryResponse:
        """Send it again under the same `webhook-id`, also one that arrived. One that waits goes now."""
        return delivery_out(await webhook_deliveries.replay(request.user, DeliveryId(delivery_id)))


class EndpointDeliveriesController(Controller):
    """Test and replay routes of one endpoint."""

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
                WebhookDeliveryResponse,
                description="The delivery, which is made in a moment",
                examples=[Example(value={**DELIVERY_EXAMPLE, "type": "endpoint.test", "status": "pending"})],
            ),
            **problem_responses(409),
        },
    )
    async def test(
        self, request: Asked, endpoint_id: FromPath[UUID], webhook_endpoints: NamedDependency[Endpoints]
    ) -> WebhookDeliveryResponse:
        """Send a notice of type `endpoint.test` to this endpoint alone, whatever types it takes."""
        message_id = effect_id(request.scope)
        return delivery_out(await webhook_endpoints.test(request.user, EndpointId(endpoint_id), message_id))

    @post(
        "/{endpoint_id:uuid}/replays",
        operation_id="replayFailedWebhooks",
        summary="Send again what failed",
        status_code=202,
        responses={
            202: ResponseSpec(
                WebhookReplaysResponse,
                description="How many deliveries wait again",
                examples=[Example(value={"deliveries_count": 12})],
            ),
            **problem_responses(409),
        },
    )
    async def replay(
        self,
        request: Asked,
        endpoint_id: FromPath[UUID],
        data: ReplaysBody,
        webhook_deliveries: Known,
    ) -> WebhookReplaysResponse:
        """Send again everything from `since` on, and before `until`, that failed or is dead, each under its
        own `webhook-id`.
        """
        since = as_utc(data.since)
        assert since is not None
        count = await webhook_deliveries.replay_failed(
            request.user, EndpointId(endpoint_id), since=since, until=as_utc(data.until)
        )
        return WebhookReplaysResponse(deliveries_count=count)

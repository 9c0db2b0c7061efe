"""Routes for webhook deliveries: list, read, replay and test."""

from uuid import UUID

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody

from features.webhooks.application.deliveries import Deliveries
from features.webhooks.application.endpoints import Endpoints
from features.webhooks.application.ports import DeliveryFilter
from features.webhooks.controllers.schemas import (
    WebhookDeliveryDetailResponse,
    WebhookDeliveryResponse,
    WebhookReplaysRequest,
    WebhookReplaysResponse,
    delivery_detail_response,
    delivery_response,
)
from features.webhooks.domain.delivery import DeliveryId, DeliveryStatus
from features.webhooks.domain.endpoint import EndpointId
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit
from shared.http.responses import problems
from shared.http.route_policy import needs
from shared.middleware.idempotency import effect_id
from shared.pagination import Page
from shared.timestamps import as_utc

MANAGE = needs("webhooks:manage")


class DeliveriesController(Controller):
    path = "/v1/webhooks"
    tags = ("Webhooks",)
    opt = needs("webhooks:read")

    @get("/deliveries")
    async def list_webhook_deliveries(
        self,
        request: AuthenticatedRequest,
        webhook_deliveries: NamedDependency[Deliveries],
        cursor: Cursor = None,
        limit: Limit = 50,
        endpoint_id: FromQuery[UUID | None] = None,
        status: FromQuery[DeliveryStatus | None] = None,
    ) -> Page[WebhookDeliveryResponse]:
        """List webhook deliveries of the last 30 days, newest first.

        A `pending` delivery waits for its first or next attempt. A `failed` delivery did not arrive before
        its endpoint was disabled. A `dead` delivery failed in all its attempts.
        """
        delivery_filter = DeliveryFilter(
            endpoint_id=None if endpoint_id is None else EndpointId(endpoint_id), status=status
        )
        page = await webhook_deliveries.page(request.user, delivery_filter, cursor=cursor, limit=limit)
        return page.map(delivery_response)

    @get("/deliveries/{delivery_id:uuid}")
    async def get_webhook_delivery(
        self,
        request: AuthenticatedRequest,
        delivery_id: FromPath[UUID],
        webhook_deliveries: NamedDependency[Deliveries],
    ) -> WebhookDeliveryDetailResponse:
        """Get a webhook delivery with its body and its attempts, latest first.

        `error` is the reason why an attempt got no response.
        """
        return delivery_detail_response(await webhook_deliveries.get(request.user, DeliveryId(delivery_id)))

    @post("/deliveries/{delivery_id:uuid}/replay", status_code=202, opt=MANAGE, responses=problems(409))
    async def replay_webhook_delivery(
        self,
        request: AuthenticatedRequest,
        delivery_id: FromPath[UUID],
        webhook_deliveries: NamedDependency[Deliveries],
    ) -> WebhookDeliveryResponse:
        """Send a delivery again, with the same `webhook-id`.

        This also applies to a delivery that succeeded. A pending delivery is sent now.
        """
        return delivery_response(await webhook_deliveries.replay(request.user, DeliveryId(delivery_id)))

    @post("/endpoints/{endpoint_id:uuid}/test", status_code=202, opt=MANAGE, responses=problems(409))
    async def test_webhook_endpoint(
        self,
        request: AuthenticatedRequest,
        endpoint_id: FromPath[UUID],
        webhook_endpoints: NamedDependency[Endpoints],
    ) -> WebhookDeliveryResponse:
        """Send a test message to a webhook endpoint.

        Its type is `endpoint.test`. It is sent regardless of the types that the endpoint subscribes to.
        """
        message_id = effect_id(request.scope)
        return delivery_response(
            await webhook_endpoints.test(request.user, EndpointId(endpoint_id), message_id)
        )

    @post("/endpoints/{endpoint_id:uuid}/replays", status_code=202, opt=MANAGE, responses=problems(409))
    async def replay_failed_webhooks(
        self,
        request: AuthenticatedRequest,
        endpoint_id: FromPath[UUID],
        data: JSONBody[WebhookReplaysRequest],
        webhook_deliveries: NamedDependency[Deliveries],
    ) -> WebhookReplaysResponse:
        """Send the failed and dead deliveries of a time range again.

        Each keeps its `webhook-id`. The response contains the number of deliveries that are pending again.
        """
        since = as_utc(data.since)
        assert since is not None
        count = await webhook_deliveries.replay_failed(
            request.user, EndpointId(endpoint_id), since=since, until=as_utc(data.until)
        )
        return WebhookReplaysResponse(deliveries_count=count)

from typing import Any
from uuid import UUID

from litestar import Controller, Request, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath

from features.webhooks.application.endpoints import Endpoints
from features.webhooks.controllers.request_schemas import EndpointBody, EndpointChangesBody
from features.webhooks.controllers.schemas import (
    ENDPOINT_EXAMPLE,
    SECRET_EXAMPLE,
    NewWebhookEndpointResponse,
    WebhookEndpointResponse,
    WebhookEndpointsResponse,
    endpoint_out,
    new_endpoint_out,
)
from features.webhooks.domain.endpoint import EndpointId
from shared.caller import Caller
from shared.http.pagination_parameters import Cursor, Limit
from shared.http.response_headers import LOCATION
from shared.http.route_policy import needs
from shared.middleware.idempotency import effect_id

PATH = "/v1/webhooks/endpoints"
MANAGE = needs("webhooks:manage")

Known = NamedDependency[Endpoints]
Asked = Request[Caller, Any, Any]
SHOWN = ResponseSpec(
    WebhookEndpointResponse, description="The endpoint", examples=[Example(value=ENDPOINT_EXAMPLE)]
)


class EndpointsController(Controller):
    path = PATH
    tags = ("Webhooks",)
    opt = needs("webhooks:read")

    @post(
        "/",
        operation_id="createWebhookEndpoint",
        summary="Add an endpoint",
        opt=MANAGE,
        response_headers=(LOCATION,),
        responses={
            201: ResponseSpec(
                NewWebhookEndpointResponse,
                description="The endpoint, with the secret to check signatures by",
                examples=[Example(value={**ENDPOINT_EXAMPLE, "secret": SECRET_EXAMPLE})],
            ),
        },
    )
    async def create(
        self, request: Asked, data: EndpointBody, webhook_endpoints: Known
    ) -> Response[NewWebhookEndpointResponse]:
        """Name an address that is to be told what happens in the account: a POST for each notice, by the
        Standard Webhooks specification.

        Check `webhook-signature` with the secret before you believe anything, answer 2xx within 15 seconds,
        and take a `webhook-id` that you have had already for done: a notice may come twice. What is not
        answered so is sent again after 5 seconds, 5 and 30 minutes, 2, 5, 10 and 10 hours, or as
        `Retry-After` asks. 410 disables the endpoint, and so do five days without one success. Redirects are
        not followed.
        """
        endpoint = await webhook_endpoints.create(
            request.user, EndpointId(effect_id(request.scope)), data.content
        )
        made = new_endpoint_out(endpoint, webhook_endpoints.secret(endpoint))
        return Response(made, status_code=201, headers={"Location": f"{PATH}/{endpoint.id}"})

    @get(
        "/",
        operation_id="listWebhookEndpoints",
        summary="Endpoints",
        responses={
            200: ResponseSpec(
                WebhookEndpointsResponse,
                description="A page",
                examples=[Example(value={"items": [ENDPOINT_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def page(
        self, request: Asked, webhook_endpoints: Known, cursor: Cursor = None, limit: Limit = 50
    ) -> WebhookEndpointsResponse:
        """The account's endpoints, newest first."""
        page = await webhook_endpoints.page(request.user, cursor=cursor, limit=limit)
        return WebhookEndpointsResponse(
            items=[endpoint_out(endpoint) for endpoint in page.items], next_cursor=page.next_cursor
        )

    @get(
        "/{endpoint_id:uuid}",
        operation_id="getWebhookEndpoint",
        summary="An endpoint",
        responses={200: SHOWN},
    )
    async def read(
        self, request: Asked, endpoint_id: FromPath[UUID], webhook_endpoints: Known
    ) -> WebhookEndpointResponse:
        """One endpoint. `failing_since` is the first failure since the last success."""
        return endpoint_out(await webhook_endpoints.get(request.user, EndpointId(endpoint_id)))

    @patch(
        "/{endpoint_id:uuid}",
        operation_id="updateWebhookEndpoint",
        summary="Change an endpoint",
        opt=MANAGE,
        responses={200: SHOWN},
    )
    async def update(
        self,
        request: Asked,
        endpoint_id: FromPath[UUID],
        data: EndpointChangesBody,
        webhook_endpoints: Known,
    ) -> WebhookEndpointResponse:
        """Change the fields you send and no others. What waits to be sent goes to the new address."""
        return endpoint_out(
            await webhook_endpoints.change(request.user, EndpointId(endpoint_id), data.fields)
        )

    @delete(
        "/{endpoint_id:uuid}",
        operation_id="deleteWebhookEndpoint",
        summary="Remove an endpoint",
        opt=MANAGE,
        responses={204: ResponseSpec(None, description="Removed")},
    )
    async def remove(self, request: Asked, endpoint_id: FromPath[UUID], webhook_endpoints: Known) -> None:
        """Remove an endpoint for good, with its deliveries: what has not been sent is not sent."""
        await webhook_endpoints.remove(request.user, EndpointId(endpoint_id))

    @post(
        "/{endpoint_id:uuid}/enable",
        operation_id="enableWebhookEndpoint",
        summary="Enable",
        status_code=200,
        opt=MANAGE,
        responses={200: SHOWN},
    )
    async def enable(
        self, request: Asked, endpoint_id: FromPath[UUID], webhook_endpoints: Known
    ) -> WebhookEndpointResponse:
        """Send to it again, from now on. What it has missed is sent when you ask for it. Repeatable."""
        return endpoint_out(await webhook_endpoints.enable(request.user, EndpointId(endpoint_id)))

    @post(
        "/{endpoint_id:uuid}/disable",
        operation_id="disableWebhookEndpoint",
        summary="Disable",
        status_code=200,
        opt=MANAGE,
        responses={200: SHOWN},
    )
    async def disable(
        self, request: Asked, endpoint_id: FromPath[UUID], webhook_endpoints: Known
    ) -> WebhookEndpointResponse:
        """Send nothing to it until it is enabled; what waits to be sent has failed. Repeatable."""
        return endpoint_out(await webhook_endpoints.disable(request.user, EndpointId(endpoint_id)))

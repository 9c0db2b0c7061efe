"""Routes for webhook endpoints and their signing secrets."""

from uuid import UUID

from litestar import Controller, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from features.webhooks.application.endpoints import Endpoints
from features.webhooks.controllers.schemas import (
    NewWebhookEndpointResponse,
    WebhookEndpointPatch,
    WebhookEndpointRequest,
    WebhookEndpointResponse,
    WebhookSecretResponse,
    endpoint_response,
)
from features.webhooks.domain.endpoint import Endpoint, EndpointId
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit
from shared.http.responses import LOCATION, struct_from
from shared.http.route_policy import needs
from shared.middleware.idempotency import effect_id
from shared.pagination import Page

PATH = "/v1/webhooks/endpoints"
MANAGE = needs("webhooks:manage")


class EndpointsController(Controller):
    path = PATH
    tags = ("Webhooks",)
    opt = needs("webhooks:read")

    @post("/", opt=MANAGE, response_headers=(LOCATION,))
    async def create_webhook_endpoint(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[WebhookEndpointRequest],
        webhook_endpoints: NamedDependency[Endpoints],
    ) -> Response[NewWebhookEndpointResponse]:
        """Create a webhook endpoint.

        Oslira sends a POST request to its URL for each event in the account, in the format of the Standard
        Webhooks specification. The response contains the secret that verifies the signatures.

        Verify `webhook-signature` before you use the content, and respond with 2xx within 15 seconds. The
        same message can arrive twice: ignore a `webhook-id` that you have already processed. Without a 2xx
        response the message is sent again after 5 seconds, 5 and 30 minutes, 2, 5, 10 and 10 hours, or later
        if `Retry-After` asks for it. Status 410 disables the endpoint, and so do five days without a
        success. Redirects are not followed.
        """
        endpoint = await webhook_endpoints.create(
            request.user, EndpointId(effect_id(request.scope)), data.content
        )
        created = struct_from(NewWebhookEndpointResponse, endpoint, secret=webhook_endpoints.secret(endpoint))
        return Response(created, headers={"Location": f"{PATH}/{endpoint.id}"})

    @get("/")
    async def list_webhook_endpoints(
        self,
        request: AuthenticatedRequest,
        webhook_endpoints: NamedDependency[Endpoints],
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[WebhookEndpointResponse]:
        """List the account's webhook endpoints, newest first."""
        page = await webhook_endpoints.page(request.user, cursor=cursor, limit=limit)
        return page.map(endpoint_response)

    @get("/{endpoint_id:uuid}")
    async def get_webhook_endpoint(
        self,
        request: AuthenticatedRequest,
        endpoint_id: FromPath[UUID],
        webhook_endpoints: NamedDependency[Endpoints],
    ) -> WebhookEndpointResponse:
        """Get a webhook endpoint.

        `failing_since` is the time of the first failure after the last success.
        """
        return endpoint_response(await webhook_endpoints.get(request.user, EndpointId(endpoint_id)))

    @patch("/{endpoint_id:uuid}", opt=MANAGE)
    async def update_webhook_endpoint(
        self,
        request: AuthenticatedRequest,
        endpoint_id: FromPath[UUID],
        data: JSONBody[WebhookEndpointPatch],
        webhook_endpoints: NamedDependency[Endpoints],
    ) -> WebhookEndpointResponse:
        """Change a webhook endpoint.

        Only the fields in the request change. Pending deliveries are sent to the new URL.
        """
        endpoint = await webhook_endpoints.change(request.user, EndpointId(endpoint_id), data.sent_fields)
        return endpoint_response(endpoint)

    @delete("/{endpoint_id:uuid}", opt=MANAGE)
    async def delete_webhook_endpoint(
        self,
        request: AuthenticatedRequest,
        endpoint_id: FromPath[UUID],
        webhook_endpoints: NamedDependency[Endpoints],
    ) -> None:
        """Delete a webhook endpoint and its deliveries.

        Pending deliveries are not sent. The deletion cannot be undone.
        """
        await webhook_endpoints.remove(request.user, EndpointId(endpoint_id))

    @post("/{endpoint_id:uuid}/enable", status_code=200, opt=MANAGE)
    async def enable_webhook_endpoint(
        self,
        request: AuthenticatedRequest,
        endpoint_id: FromPath[UUID],
        webhook_endpoints: NamedDependency[Endpoints],
    ) -> WebhookEndpointResponse:
        """Enable a webhook endpoint.

        Deliveries start again with the next event; earlier events are sent when you replay them. This
        request can be repeated.
        """
        return endpoint_response(await webhook_endpoints.enable(request.user, EndpointId(endpoint_id)))

    @post("/{endpoint_id:uuid}/disable", status_code=200, opt=MANAGE)
    async def disable_webhook_endpoint(
        self,
        request: AuthenticatedRequest,
        endpoint_id: FromPath[UUID],
        webhook_endpoints: NamedDependency[Endpoints],
    ) -> WebhookEndpointResponse:
        """Disable a webhook endpoint.

        Nothing is sent to it until it is enabled, and its pending deliveries fail. This request can be
        repeated.
        """
        return endpoint_response(await webhook_endpoints.disable(request.user, EndpointId(endpoint_id)))

    @get("/{endpoint_id:uuid}/secret", opt=MANAGE)
    async def get_webhook_secret(
        self,
        request: AuthenticatedRequest,
        endpoint_id: FromPath[UUID],
        webhook_endpoints: NamedDependency[Endpoints],
    ) -> WebhookSecretResponse:
        """Get the secret that verifies the signatures of a webhook endpoint."""
        endpoint = await webhook_endpoints.get(request.user, EndpointId(endpoint_id))
        return _secret_response(endpoint, webhook_endpoints.secret(endpoint))

    @post("/{endpoint_id:uuid}/rotate-secret", status_code=200, opt=MANAGE)
    async def rotate_webhook_secret(
        self,
        request: AuthenticatedRequest,
        endpoint_id: FromPath[UUID],
        webhook_endpoints: NamedDependency[Endpoints],
    ) -> WebhookSecretResponse:
        """Replace the secret of a webhook endpoint.

        For 24 hours messages are signed with both secrets, so that you can update the receivers. A second
        rotation ends the old secret immediately.
        """
        endpoint = await webhook_endpoints.rotate(
            request.user, EndpointId(endpoint_id), effect_id(request.scope)
        )
        return _secret_response(endpoint, webhook_endpoints.secret(endpoint))


def _secret_response(endpoint: Endpoint, secret: str) -> WebhookSecretResponse:
    return struct_from(WebhookSecretResponse, endpoint, endpoint_id=endpoint.id, secret=secret)

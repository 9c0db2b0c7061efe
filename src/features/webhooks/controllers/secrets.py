from typing import Any
from uuid import UUID

from litestar import Controller, Request, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath

from features.webhooks.application.endpoints import Endpoints
from features.webhooks.controllers.endpoints import PATH
from features.webhooks.controllers.schemas import (
    ENDPOINT_EXAMPLE,
    SECRET_EXAMPLE,
    WebhookSecretResponse,
    secret_out,
)
from features.webhooks.domain.endpoint import EndpointId
from shared.caller import Caller
from shared.http.route_policy import needs
from shared.middleware.idempotency import effect_id

Known = NamedDependency[Endpoints]
Asked = Request[Caller, Any, Any]
SECRET = ResponseSpec(
    WebhookSecretResponse,
    description="The secret that signs now",
    examples=[
        Example(
            value={
                "endpoint_id": ENDPOINT_EXAMPLE["id"],
                "secret": SECRET_EXAMPLE,
                "secret_version": 1,
                "rotated_at": None,
            }
        )
    ],
)


class SecretsController(Controller):
    path = PATH
    tags = ("Webhooks",)
    opt = needs("webhooks:manage")

    @get(
        "/{endpoint_id:uuid}/secret",
        operation_id="getWebhookSecret",
        summary="Show the secret",
        responses={200: SECRET},
    )
    async def secret(
        self, request: Asked, endpoint_id: FromPath[UUID], webhook_endpoints: Known
    ) -> WebhookSecretResponse:
        """The secret that signatures are checked by."""
        endpoint = await webhook_endpoints.get(request.user, EndpointId(endpoint_id))
        return secret_out(endpoint, webhook_endpoints.secret(endpoint))

    @post(
        "/{endpoint_id:uuid}/rotate-secret",
        operation_id="rotateWebhookSecret",
        summary="Rotate the secret",
        status_code=200,
        responses={200: SECRET},
    )
    async def rotate(
        self, request: Asked, endpoint_id: FromPath[UUID], webhook_endpoints: Known
    ) -> WebhookSecretResponse:
        """Make a new secret. For 24 hours the old one signs along, so that receivers can follow in their own
        time; rotate twice, and the old one ends at once.
        """
        rotation_id = effect_id(request.scope)
        endpoint = await webhook_endpoints.rotate(request.user, EndpointId(endpoint_id), rotation_id)
        return secret_out(endpoint, webhook_endpoints.secret(endpoint))

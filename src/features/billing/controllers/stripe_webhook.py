from typing import Any

import msgspec
from litestar import Controller, Request, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example

from features.billing.application.stripe_events.receive import StripeEventReceiver
from shared.errors import Malformed
from shared.http.problems import problem_responses
from shared.http.route_policy import PUBLIC, UNCOUNTED
from shared.middleware.rate_limits import FailureRateLimit

PATH = "/v1/webhooks/stripe"
SIGNATURE = b"stripe-signature"


class ReceivedResponse(msgspec.Struct, frozen=True, kw_only=True):
    received: bool
    duplicate: bool


class StripeWebhookController(Controller):
    path = PATH
    tags = ("Webhooks",)
    security = ({},)  # authenticated by Stripe's signature

    @post(
        "/",
        operation_id="receiveStripeEvent",
        summary="Receive an event of Stripe's",
        status_code=200,
        opt={**PUBLIC, **UNCOUNTED},
        responses={
            200: ResponseSpec(
                ReceivedResponse,
                description="The event is kept and will be worked on, or has been",
                examples=[Example(value={"received": True, "duplicate": False})],
            ),
            **problem_responses(400, 503),
        },
    )
    async def receive(
        self,
        request: Request[Any, Any, Any],
        receiver: NamedDependency[StripeEventReceiver],
        counted_refusals: NamedDependency[FailureRateLimit],
    ) -> ReceivedResponse:
        """For Stripe alone: an event as JSON, with its `Stripe-Signature`. A success means that the event is
        kept, so Stripe need not send it again; if it does, nothing happens twice. Events may come in any
        order. A signature is good for five minutes.
        """
        signatures = [value for name, value in request.scope["headers"] if name == SIGNATURE]
        try:
            is_new = await receiver.receive(await request.body(), b",".join(signatures))
        except Malformed:
            await counted_refusals.count(request.scope, "stripe")
            raise
        return ReceivedResponse(received=True, duplicate=not is_new)

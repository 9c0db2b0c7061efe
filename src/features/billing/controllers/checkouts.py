"""Routes for offers, checkouts and the customer portal."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath

from features.billing.application.catalog import Catalog
from features.billing.application.checkouts import Checkouts
from features.billing.controllers.request_schemas import CheckoutBody, PortalBody
from features.billing.controllers.schemas import (
    CHECKOUT_EXAMPLE,
    OFFERS_EXAMPLE,
    CheckoutResponse,
    LimitsResponse,
    OffersResponse,
    PackResponse,
    PlanResponse,
    PortalResponse,
    checkout_out,
)
from features.billing.domain.catalog import Plan
from features.billing.domain.payment_errors import OrderUnclear
from shared.caller import Caller
from shared.http.problems import problem_responses
from shared.http.response_headers import LOCATION
from shared.http.route_policy import PUBLIC, counts_as, needs
from shared.middleware.idempotency import effect_id

BUYS = needs("billing:manage") | counts_as("purchase")

Asked = Request[Caller, Any, Any]


def _shows(description: str) -> ResponseSpec:
    return ResponseSpec(CheckoutResponse, description=description, examples=[Example(value=CHECKOUT_EXAMPLE)])


class CheckoutsController(Controller):
    path = "/v1/billing"
    tags = ("Billing",)

    @get(
        "/plans",
        operation_id="listPlans",
        summary="Plans and packs",
        opt=PUBLIC,
        security=({},),
        responses={
            200: ResponseSpec(
                OffersResponse, description="What is sold", examples=[Example(value=OFFERS_EXAMPLE)]
            ),
        },
    )
    async def offers(self, catalog: NamedDependency[Catalog]) -> OffersResponse:
        """Plans bring credits every month, and limits; packs bring credits once, which do not expire. A limit
        of `null` is none. Prices are in cents; those of plans are for a month.
        """
        packs = await catalog.packs()
        return OffersResponse(
            plans=[_plan_out(plan) for plan in await catalog.plans()],
            packs=[msgspec.convert(pack, PackResponse, from_attributes=True) for pack in packs],
        )

    @post(
        "/checkout",
        operation_id="openCheckout",
        summary="Buy",
        opt=BUYS,
        response_headers=(LOCATION,),
        responses={
            201: _shows("Send the person to `url`; `Location` tells what became of it"),
            **problem_responses(409, 502),
        },
    )
    async def open(
        self, request: Asked, data: CheckoutBody, checkouts: NamedDependency[Checkouts]
    ) -> Response[CheckoutResponse]:
        """Begin to buy a plan or a pack: the answer's `url` is Stripe's till. What was bought is there when
        Stripe has told us that it is paid, as a rule within seconds.

        Whoever is at the till for the same plan already is sent there again. An account that has a paid plan
        changes it instead. Both addresses have to be of the frontend.
        """
        new_id, addresses = (
            effect_id(request.scope),
            {"success_url": data.success_url, "cancel_url": data.cancel_url},
        )
        match (data.plan, data.pack):
            case (str() as plan, None):
                checkout = await checkouts.open_plan(request.user, new_id, plan, **addresses)
            case (None, str() as pack):
                checkout = await checkouts.open_pack(request.user, new_id, pack, **addresses)
            case _:
                raise OrderUnclear
        return Response(
            checkout_out(checkout),
            status_code=201,
            headers={"Location": f"/v1/billing/checkouts/{checkout.id}"},
        )

    @get(
        "/checkouts/{checkout_id:uuid}",
        operation_id="getCheckout",
        summary="Follow a checkout",
        opt=needs("billing:read"),
        responses={200: _shows("The checkout")},
    )
    async def read(
        self, request: Asked, checkout_id: FromPath[UUID], checkouts: NamedDependency[Checkouts]
    ) -> CheckoutResponse:
        """What became of a checkout: `completed` when it is paid and its credits are there."""
        return checkout_out(await checkouts.get(request.user, checkout_id))

    @post(
        "/portal",
        operation_id="openPortal",
        summary="Stripe's portal",
        opt=BUYS,
        responses={
            201: ResponseSpec(
                PortalResponse,
                description="Send the person to `url`",
                examples=[Example(value={"url": "https://billing.stripe.com/p/session/1"})],
            ),
            **problem_responses(409, 502),
        },
    )
    async def portal(
        self, request: Asked, data: PortalBody, checkouts: NamedDependency[Checkouts]
    ) -> PortalResponse:
        """Stripe's own page for cards, addresses and bills, of somebody who has bought before."""
        key = effect_id(request.scope)
        return PortalResponse(url=await checkouts.portal(request.user, key, return_url=data.return_url))


def _plan_out(plan: Plan) -> PlanResponse:
    limits = msgspec.convert(plan, LimitsResponse, from_attributes=True)
    shared = {name: getattr(plan, name) for name in PlanResponse.__struct_fields__ if name != "limits"}
    return PlanResponse(**shared, limits=limits)

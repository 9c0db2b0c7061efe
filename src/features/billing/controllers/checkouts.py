"""Routes for plans and packs, checkouts and the customer portal."""

from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from features.billing.application.catalog import Catalog
from features.billing.application.checkouts import Checkouts
from features.billing.controllers.schemas import (
    CheckoutRequest,
    CheckoutResponse,
    OffersResponse,
    PortalRequest,
    PortalResponse,
    checkout_response,
    plan_response,
)
from features.billing.domain.errors import OrderUnclear
from shared.http.parameters import AuthenticatedRequest
from shared.http.responses import LOCATION, problems
from shared.http.route_policy import PUBLIC, counts_as, needs
from shared.middleware.idempotency import effect_id

PURCHASE = needs("billing:manage") | counts_as("purchase")


class CheckoutsController(Controller):
    path = "/v1/billing"
    tags = ("Billing",)

    @get("/plans", opt=PUBLIC, security=({},))
    async def list_plans(self, catalog: NamedDependency[Catalog]) -> OffersResponse:
        """List the plans and packs on offer.

        A plan grants credits every month and sets limits; a limit of `null` means unlimited. A pack grants
        credits once; they do not expire. Prices are in cents; the price of a plan is per month.
        """
        plans, packs = await catalog.plans(), await catalog.packs()
        return OffersResponse(plans=[plan_response(plan) for plan in plans], packs=packs)

    @post("/checkout", opt=PURCHASE, response_headers=(LOCATION,), responses=problems(409, 502))
    async def open_checkout(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[CheckoutRequest],
        checkouts: NamedDependency[Checkouts],
    ) -> Response[CheckoutResponse]:
        """Open a checkout for a plan or a pack.

        `url` in the response is Stripe's checkout page. The plan or the credits are available after Stripe
        confirms the payment, usually within seconds; `Location` is the URL of the checkout's status.

        A second request for a plan whose checkout is still open returns the same checkout. An account with a
        paid plan changes its plan instead. Both return URLs must be on the frontend's host.
        """
        new_id = effect_id(request.scope)
        urls = {"success_url": data.success_url, "cancel_url": data.cancel_url}
        match (data.plan, data.pack):
            case (str() as plan, None):
                checkout = await checkouts.open_plan(request.user, new_id, plan, **urls)
            case (None, str() as pack):
                checkout = await checkouts.open_pack(request.user, new_id, pack, **urls)
            case _:
                raise OrderUnclear
        location = f"/v1/billing/checkouts/{checkout.id}"
        return Response(checkout_response(checkout), headers={"Location": location})

    @get("/checkouts/{checkout_id:uuid}", opt=needs("billing:read"))
    async def get_checkout(
        self,
        request: AuthenticatedRequest,
        checkout_id: FromPath[UUID],
        checkouts: NamedDependency[Checkouts],
    ) -> CheckoutResponse:
        """Get the status of a checkout.

        It is `completed` when it is paid and its credits are granted.
        """
        return checkout_response(await checkouts.get(request.user, checkout_id))

    @post("/portal", opt=PURCHASE, responses=problems(409, 502))
    async def open_portal(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[PortalRequest],
        checkouts: NamedDependency[Checkouts],
    ) -> PortalResponse:
        """Open Stripe's customer portal for cards, addresses and invoices.

        It is available after the first purchase.
        """
        key = effect_id(request.scope)
        return PortalResponse(url=await checkouts.portal(request.user, key, return_url=data.return_url))

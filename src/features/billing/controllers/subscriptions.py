"""Routes for the subscription, plan changes and invoices."""

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from features.billing.application.plan_changes import PlanChanges
from features.billing.application.queries import Invoices, Subscriptions
from features.billing.controllers.schemas import (
    PlanChangeRequest,
    PreviewRequest,
    PreviewResponse,
    SubscriptionResponse,
    preview_response,
    subscription_response,
)
from features.billing.domain.plan_changes import PREVIEW_LASTS, asked_at
from features.billing.domain.subscriptions import Invoice
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit
from shared.http.responses import problems
from shared.http.route_policy import counts_as, needs
from shared.middleware.idempotency import effect_id
from shared.pagination import Page

MANAGE = needs("billing:manage")


class SubscriptionsController(Controller):
    path = "/v1/billing"
    tags = ("Billing",)
    opt = needs("billing:read")

    @get("/subscription")
    async def get_subscription(
        self, request: AuthenticatedRequest, subscriptions: NamedDependency[Subscriptions]
    ) -> SubscriptionResponse:
        """Get the account's subscription: its plan, its period and the plan that follows.

        An account without a paid plan has the free plan. `plan_in_force` is also the free plan while an
        invoice stays unpaid.
        """
        return subscription_response(await subscriptions.current(request.user))

    @post("/change-plan/preview", status_code=200, opt=MANAGE, responses=problems(409, 502))
    async def preview_plan_change(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[PreviewRequest],
        changes: NamedDependency[PlanChanges],
    ) -> PreviewResponse:
        """Preview the price and the credits of another plan.

        A larger plan starts immediately: the rest of the period is charged now, and the additional credits
        are granted now. A smaller plan starts with the next period.
        """
        preview = await changes.preview(request.user, data.plan)
        return preview_response(preview, expires_at=asked_at(preview.id) + PREVIEW_LASTS)

    @post(
        "/change-plan", status_code=200, opt=MANAGE | counts_as("purchase"), responses=problems(402, 409, 502)
    )
    async def change_plan(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[PlanChangeRequest],
        changes: NamedDependency[PlanChanges],
    ) -> SubscriptionResponse:
        """Change the plan as previewed, within ten minutes of the preview.

        If the subscription has changed since the preview, here or at Stripe, the response is 409
        `preview_expired`. If the card is declined, the response is 402 and the plan stays the same.
        """
        key = effect_id(request.scope)
        return subscription_response(await changes.change(request.user, data.plan, data.preview_id, key=key))

    @post("/cancel", status_code=200, opt=MANAGE, responses=problems(409, 502))
    async def cancel_subscription(
        self, request: AuthenticatedRequest, changes: NamedDependency[PlanChanges]
    ) -> SubscriptionResponse:
        """Cancel the subscription at the end of the paid period.

        Until then it can be resumed.
        """
        return subscription_response(await changes.cancel(request.user, key=effect_id(request.scope)))

    @post("/resume", status_code=200, opt=MANAGE, responses=problems(409, 502))
    async def resume_subscription(
        self, request: AuthenticatedRequest, changes: NamedDependency[PlanChanges]
    ) -> SubscriptionResponse:
        """Undo a cancellation or a change to a smaller plan that has not taken effect."""
        return subscription_response(await changes.resume(request.user, key=effect_id(request.scope)))

    @get("/invoices")
    async def list_invoices(
        self,
        request: AuthenticatedRequest,
        invoices: NamedDependency[Invoices],
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[Invoice]:
        """List the account's invoices, newest first."""
        return await invoices.page(request.user, cursor=cursor, limit=limit)

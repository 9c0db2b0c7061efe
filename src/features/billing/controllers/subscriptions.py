"""Routes for the subscription, plan changes and invoices."""

from typing import Any

from litestar import Controller, Request, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example

from features.billing.application.invoices import Invoices
from features.billing.application.plan_changes import PlanChanges
from features.billing.application.subscriptions import Subscriptions
from features.billing.controllers.request_schemas import ChangeBody, PreviewBody
from features.billing.controllers.schemas import (
    INVOICE_EXAMPLE,
    PREVIEW_EXAMPLE,
    SUBSCRIPTION_EXAMPLE,
    InvoicesResponse,
    PreviewResponse,
    SubscriptionResponse,
    invoice_out,
    preview_out,
    subscription_out,
)
from features.billing.domain.plan_changes import PREVIEW_LASTS, asked_at
from shared.caller import Caller
from shared.http.pagination_parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.route_policy import counts_as, needs
from shared.middleware.idempotency import effect_id

MANAGES = needs("billing:manage")
BUYS = MANAGES | counts_as("purchase")
CHANGED = {
    200: ResponseSpec(
        SubscriptionResponse,
        description="The subscription as it is now",
        examples=[Example(value=SUBSCRIPTION_EXAMPLE)],
    ),
    **problem_responses(409, 502),
}

Asked = Request[Caller, Any, Any]


class SubscriptionsController(Controller):
    path = "/v1/billing"
    tags = ("Billing",)
    opt = needs("billing:read")

    @get(
        "/subscription",
        operation_id="getSubscription",
        summary="The plan",
        responses={
            200: ResponseSpec(
                SubscriptionResponse,
                description="The subscription",
                examples=[Example(value=SUBSCRIPTION_EXAMPLE)],
            )
        },
    )
    async def read(
        self, request: Asked, subscriptions: NamedDependency[Subscriptions]
    ) -> SubscriptionResponse:
        """The account's plan, its period, what the period has brought, and what follows it. An account that
        pays for none has the free one, and so has, as `plan_in_force`, one whose bill stays unpaid.
        """
        return subscription_out(await subscriptions.current(request.user))

    @post(
        "/change-plan/preview",
        operation_id="previewPlanChange",
        summary="Preview a change",
        status_code=200,
        opt=MANAGES,
        responses={
            200: ResponseSpec(
                PreviewResponse, description="What it would mean", examples=[Example(value=PREVIEW_EXAMPLE)]
            ),
            **problem_responses(409, 502),
        },
    )
    async def preview(
        self, request: Asked, data: PreviewBody, changes: NamedDependency[PlanChanges]
    ) -> PreviewResponse:
        """What another plan would cost and bring. A larger one begins at once: what is left of the period is
        billed now, and the difference in credits comes now. A smaller one begins with the next period.
        """
        preview = await changes.preview(request.user, data.plan)
        return preview_out(preview, expires_at=asked_at(preview.id) + PREVIEW_LASTS)

    @post(
        "/change-plan",
        operation_id="changePlan",
        summary="Change the plan",
        status_code=200,
        opt=BUYS,
        responses={**CHANGED, **problem_responses(402)},
    )
    async def change(
        self, request: Asked, data: ChangeBody, changes: NamedDependency[PlanChanges]
    ) -> SubscriptionResponse:
        """Change to another plan as it was previewed, within ten minutes. An account's changes are carried
        out one after the other: when the subscription is no longer the one that was previewed, here or at
        Stripe, the answer is 409 `preview_expired`. When the card refuses, the answer is 402 and the plan
        stays.
        """
        key = effect_id(request.scope)
        return subscription_out(await changes.change(request.user, data.plan, data.preview_id, key=key))

    @post(
        "/cancel",
        operation_id="cancelSubscription",
        summary="Cancel",
        status_code=200,
        opt=MANAGES,
        responses=CHANGED,
    )
    async def cancel(self, request: Asked, changes: NamedDependency[PlanChanges]) -> SubscriptionResponse:
        """End the subscription with the period that is paid for. Until then it can be resumed."""
        return subscription_out(await changes.cancel(request.user, key=effect_id(request.scope)))

    @post(
        "/resume",
        operation_id="resumeSubscription",
        summary="Resume",
        status_code=200,
        opt=MANAGES,
        responses=CHANGED,
    )
    async def resume(self, request: Asked, changes: NamedDependency[PlanChanges]) -> SubscriptionResponse:
        """Take back a cancellation, or a smaller plan that was to follow."""
        return subscription_out(await changes.resume(request.user, key=effect_id(request.scope)))

    @get(
        "/invoices",
        operation_id="listInvoices",
        summary="Invoices",
        responses={
            200: ResponseSpec(
                InvoicesResponse,
                description="A page",
                examples=[Example(value={"items": [INVOICE_EXAMPLE], "next_cursor": None})],
            )
        },
    )
    async def invoices(
        self, request: Asked, invoices: NamedDependency[Invoices], cursor: Cursor = None, limit: Limit = 50
    ) -> InvoicesResponse:
        """The account's invoices, newest first. Follow `next_cursor` until it is null."""
        page = await invoices.page(request.user, cursor=cursor, limit=limit)
        return InvoicesResponse(
            items=[invoice_out(item) for item in page.items], next_cursor=page.next_cursor
        )

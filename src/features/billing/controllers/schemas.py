"""Request and response schemas of billing."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from features.billing.domain.catalog import Pack, Plan
from features.billing.domain.plan_changes import PREVIEW_PATTERN, Direction, PlanChangePreview
from features.billing.domain.subscriptions import AccountBilling, Checkout, CheckoutStatus
from shared.http.parameters import RequestBody
from shared.http.responses import struct_from

Name = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z_]{0,39}$", examples=["growth"])]
ReturnUrl = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=2_000, description="The URL to return to, on the frontend's host."),
]
PreviewId = Annotated[str, msgspec.Meta(pattern=PREVIEW_PATTERN, description="Id of the accepted preview.")]


class CheckoutRequest(RequestBody, frozen=True, kw_only=True):
    """Contains either `plan` or `pack`."""

    plan: Name | None = None
    pack: Name | None = None
    success_url: ReturnUrl | None = None
    cancel_url: ReturnUrl | None = None


class PortalRequest(RequestBody, frozen=True, kw_only=True):
    return_url: ReturnUrl | None = None


class PreviewRequest(RequestBody, frozen=True, kw_only=True):
    plan: Name


class PlanChangeRequest(RequestBody, frozen=True, kw_only=True):
    plan: Name
    preview_id: PreviewId


class LimitsResponse(msgspec.Struct, frozen=True, kw_only=True):
    business_profiles_max: int | None
    runs_at_once: int
    bulk_max: int
    light_per_hour: int
    history_days: int | None


class PlanResponse(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    monthly_credits: int
    price_cents: int
    currency: str
    limits: LimitsResponse


class OffersResponse(msgspec.Struct, frozen=True, kw_only=True):
    plans: list[PlanResponse]
    packs: list[Pack]


class SubscriptionResponse(msgspec.Struct, frozen=True, kw_only=True):
    account_id: UUID
    plan: str
    plan_in_force: str
    status: str
    is_paid_plan: bool
    monthly_credits: int
    credits_granted: int
    price_cents: int
    currency: str
    period_start: datetime
    period_end: datetime
    next_plan: str | None
    cancels_at: datetime | None


class CheckoutResponse(msgspec.Struct, frozen=True, kw_only=True):
    checkout_id: UUID
    status: CheckoutStatus
    plan: str | None
    pack: str | None
    url: str | None
    expires_at: datetime | None
    credits: int
    price_cents: int
    currency: str
    created_at: datetime
    completed_at: datetime | None


class PortalResponse(msgspec.Struct, frozen=True, kw_only=True):
    url: str


class PreviewResponse(msgspec.Struct, frozen=True, kw_only=True):
    preview_id: str
    plan: str
    direction: Direction
    effective_at: datetime
    due_now_cents: int
    currency: str
    credits_now: int
    credits_monthly: int
    price_cents: int
    expires_at: datetime


def plan_response(plan: Plan) -> PlanResponse:
    return struct_from(PlanResponse, plan, limits=struct_from(LimitsResponse, plan))


def subscription_response(billing: AccountBilling) -> SubscriptionResponse:
    return struct_from(
        SubscriptionResponse,
        billing.subscription,
        account_id=billing.account_id,
        plan_in_force=billing.plan,
        is_paid_plan=billing.subscription.clock == "stripe",
    )


def checkout_response(checkout: Checkout) -> CheckoutResponse:
    return struct_from(CheckoutResponse, checkout, checkout_id=checkout.id)


def preview_response(preview: PlanChangePreview, expires_at: datetime) -> PreviewResponse:
    change = preview.change
    return PreviewResponse(
        preview_id=preview.id,
        plan=change.target.name,
        direction=change.direction,
        effective_at=change.effective_at,
        due_now_cents=preview.due_now_cents,
        currency=preview.currency,
        credits_now=change.credits_now,
        credits_monthly=change.target.monthly_credits,
        price_cents=change.target.price_cents,
        expires_at=expires_at,
    )

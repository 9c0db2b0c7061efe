"""Response schemas of billing."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from features.billing.domain.plan_changes import Direction, PlanChangePreview
from features.billing.domain.subscriptions import AccountBilling, Checkout, CheckoutStatus, Invoice


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


class PackResponse(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    credits: int
    price_cents: int
    currency: str


class OffersResponse(msgspec.Struct, frozen=True, kw_only=True):
    plans: list[PlanResponse]
    packs: list[PackResponse]


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


class InvoiceResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    number: str | None
    status: Literal["draft", "open", "paid", "uncollectible", "void"]
    billing_reason: str | None
    due_cents: int
    paid_cents: int
    refunded_cents: int
    currency: str
    period_start: datetime | None
    period_end: datetime | None
    hosted_url: str | None
    pdf_url: str | None
    created_at: datetime
    paid_at: datetime | None


class InvoicesResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[InvoiceResponse]
    next_cursor: str | None


def subscription_out(billing: AccountBilling) -> SubscriptionResponse:
    subscription = billing.subscription
    return SubscriptionResponse(
        account_id=billing.account_id,
        plan=subscription.plan,
        plan_in_force=billing.plan,
        status=subscription.status,
        is_paid_plan=subscription.clock == "stripe",
        monthly_credits=subscription.monthly_credits,
        credits_granted=subscription.credits_granted,
        price_cents=subscription.price_cents,
        currency=subscription.currency,
        period_start=subscription.period_start,
        period_end=subscription.period_end,
        next_plan=subscription.next_plan,
        cancels_at=subscription.cancels_at,
    )


def checkout_out(checkout: Checkout) -> CheckoutResponse:
    shared = {name: getattr(checkout, name) for name in CheckoutResponse.__struct_fields__[1:]}
    return CheckoutResponse(checkout_id=checkout.id, **shared)


def preview_out(preview: PlanChangePreview, expires_at: datetime) -> PreviewResponse:
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


def invoice_out(invoice: Invoice) -> InvoiceResponse:
    return msgspec.convert(invoice, InvoiceResponse, from_attributes=True)


OFFERS_EXAMPLE: dict[str, Any] = {
    "plans": [
        {
            "name": "growth",
            "title": "Growth",
            "monthly_credits": 250,
            "price_cents": 2_900,
            "currency": "usd",
            "limits": {
                "business_profiles_max": 3,
                "runs_at_once": 2,
                "bulk_max": 25,
                "light_per_hour": 60,
                "history_days": 90,
            },
        }
    ],
    "packs": [
        {"name": "small", "title": "100 credits", "credits": 100, "price_cents": 1_500, "currency": "usd"}
    ],
}
SUBSCRIPTION_EXAMPLE: dict[str, Any] = {
    "account_id": "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11",
    "plan": "growth",
    "plan_in_force": "growth",
    "status": "active",
    "is_paid_plan": True,
    "monthly_credits": 250,
    "credits_granted": 250,
    "price_cents": 2_900,
    "currency": "usd",
    "period_start": "2026-11-01T09:30:00Z",
    "period_end": "2026-12-01T09:30:00Z",
    "next_plan": None,
    "cancels_at": None,
}
CHECKOUT_EXAMPLE: dict[str, Any] = {
    "checkout_id": "0f8f6a3e-7c1b-4b8e-9d55-2a7d3c1e9b10",
    "status": "open",
    "plan": None,
    "pack": "small",
    "url": "https://checkout.stripe.com/c/pay/cs_1",
    "expires_at": "2026-11-02T09:30:00Z",
    "credits": 100,
    "price_cents": 1_500,
    "currency": "usd",
    "created_at": "2026-11-01T09:30:00Z",
    "completed_at": None,
}
PREVIEW_EXAMPLE: dict[str, Any] = {
    "preview_id": "pv_1793525400_0123456789abcdef0123456789abcdef",
    "plan": "pro",
    "direction": "upgrade",
    "effective_at": "2026-11-01T09:30:00Z",
    "due_now_cents": 7_000,
    "currency": "usd",
    "credits_now": 1_250,
    "credits_monthly": 1_500,
    "price_cents": 9_900,
    "expires_at": "2026-11-01T09:40:00Z",
}
INVOICE_EXAMPLE: dict[str, Any] = {
    "id": "0f8f6a3e-7c1b-4b8e-9d55-2a7d3c1e9b10",
    "number": "OSL-0001",
    "status": "paid",
    "billing_reason": "subscription_cycle",
    "due_cents": 2_900,
    "paid_cents": 2_900,
    "refunded_cents": 0,
    "currency": "usd",
    "period_start": "2026-11-01T09:30:00Z",
    "period_end": "2026-12-01T09:30:00Z",
    "hosted_url": "https://invoice.stripe.com/i/1",
    "pdf_url": "https://invoice.stripe.com/i/1/pdf",
    "created_at": "2026-11-01T09:30:00Z",
    "paid_at": "2026-11-01T09:30:04Z",
}

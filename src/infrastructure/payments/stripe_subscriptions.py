"""Stripe adapter for plan changes, cancellations and refunds of subscriptions."""

from typing import Any, cast
from uuid import UUID

from features.billing.application.maintenance_ports import SubscriptionEnds
from features.billing.application.ports import SubscriptionProvider
from features.billing.domain.errors import PaymentsRefused, StripeObjectMissing
from features.billing.domain.plan_changes import PlanChange
from features.billing.domain.stripe_snapshots import SubscriptionSnapshot, Surplus
from infrastructure.payments.json_fields import Json, number, required, text
from infrastructure.payments.stripe_client import StripeApi
from infrastructure.payments.stripe_mapping import SURPLUS, subscription_of
from infrastructure.payments.stripe_queries import SUBSCRIPTION_PARTS


class StripeSubscriptions(SubscriptionProvider, SubscriptionEnds):
    def __init__(self, api: StripeApi) -> None:
        self._api = api

    async def due_now_cents(self, customer_id: str, change: PlanChange, price_id: str) -> int:
        # This POST writes nothing; it has a key only because every POST of StripeApi requires one.
        preview = await self._api.post(
            "/v1/invoices/create_preview",
            f"preview:{change.subscription.stripe_subscription_id}:{price_id}:{change.at.timestamp():.0f}",
            customer=customer_id,
            subscription=change.subscription.stripe_subscription_id,
            subscription_details=_upgraded(change, price_id),
        )
        return max(0, required(number(preview.get("amount_due")), "invoice", "amount_due"))

    async def upgrade(self, change: PlanChange, price_id: str, *, key: UUID) -> None:
        await self._api.post(
            f"/v1/subscriptions/{change.subscription.stripe_subscription_id}",
            f"upgrade:{key}",
            **_upgraded(change, price_id),
            payment_behavior="error_if_incomplete",
        )

    async def downgrade(self, subscription: SubscriptionSnapshot, price_id: str, *, key: UUID) -> None:
        if subscription.schedule_id is None:
            schedule = await self._api.post(
                "/v1/subscription_schedules", f"schedule:{key}", from_subscription=subscription.id
            )
        else:
            schedule = await self._api.get(f"/v1/subscription_schedules/{subscription.schedule_id}")
        ends_at = int(subscription.period_end.timestamp())
        now = {
            "items": [{"price": subscription.price_id, "quantity": 1}],
            "start_date": _phase_start(schedule, subscription),
            "end_date": ends_at,
        }
        later = {
            "items": [{"price": price_id, "quantity": 1}],
            "start_date": ends_at,
            "duration": {"interval": "month", "interval_count": 1},
        }
        schedule_id = required(text(schedule.get("id")), "subscription schedule", "id")
        await self._api.post(
            f"/v1/subscription_schedules/{schedule_id}",
            f"phases:{key}",
            end_behavior="release",
            proration_behavior="none",
            phases=[now, later],
        )

    async def release(self, schedule_id: str) -> None:
        await self._api.post(f"/v1/subscription_schedules/{schedule_id}/release", f"release:{schedule_id}")

    async def end_with_period(self, subscription_id: str, *, ends: bool, key: UUID) -> None:
        await self._api.post(
            f"/v1/subscriptions/{subscription_id}",
            f"{'cancel' if ends else 'resume'}:{key}",
            cancel_at_period_end=ends,
        )

    async def cancel_now(self, subscription_id: str) -> SubscriptionSnapshot:
        path, key = f"/v1/subscriptions/{subscription_id}", f"cancel_now:{subscription_id}"
        try:
            return subscription_of(await self._api.delete(path, key, expand=SUBSCRIPTION_PARTS))
        except StripeObjectMissing:  # Stripe answers 404 for a subscription that is already cancelled
            found = await self._api.get(path, expand=SUBSCRIPTION_PARTS)
            return subscription_of(found)

    async def mark_surplus(self, subscription_id: str, surplus: Surplus) -> None:
        await self._api.post(
            f"/v1/subscriptions/{subscription_id}",
            f"surplus:{subscription_id}:{surplus}",
            metadata={SURPLUS: surplus},
        )

    async def refund_payment(self, payment_id: str) -> None:
        # Before 2025 some invoices have a charge and no payment intent.
        of = "charge" if payment_id.startswith("ch_") else "payment_intent"
        try:
            await self._api.post(
                "/v1/refunds",
                f"surplus:{payment_id}",
                **{of: payment_id},
                reason="duplicate",
                metadata={SURPLUS: "true"},
            )
        except PaymentsRefused as error:
            if error.reason != "charge_already_refunded":
                raise


def _upgraded(change: PlanChange, price_id: str) -> dict[str, Any]:
    """Parameters shared by preview and upgrade, so that both compute the same amount."""
    return {
        "items": [{"id": change.subscription.stripe_item_id, "price": price_id}],
        "proration_behavior": "always_invoice",
        "proration_date": int(change.at.timestamp()),
    }


def _phase_start(schedule: Json, subscription: SubscriptionSnapshot) -> int:
    """Start of the current phase, which Stripe does not allow to move."""
    starts = [number(phase.get("start_date")) for phase in cast("list[Json]", schedule.get("phases") or [])]
    ends_at = subscription.period_end.timestamp()
    begun = [start for start in starts if start is not None and start < ends_at]
    return max(begun, default=int(subscription.period_start.timestamp()))

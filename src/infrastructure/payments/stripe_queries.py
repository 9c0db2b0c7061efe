"""Stripe adapter for reading objects and lists."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from features.billing.application.ports import RawEvent, StripeReader
from features.billing.domain.stripe_snapshots import (
    CheckoutSnapshot,
    InvoiceSnapshot,
    ReversalSnapshot,
    SubscriptionSnapshot,
)
from infrastructure.payments.json_fields import Json, instant, required, text
from infrastructure.payments.stripe_client import StripeApi
from infrastructure.payments.stripe_mapping import (
    checkout_of,
    dispute_of,
    invoice_of,
    refund_of,
    subscription_of,
)

# Without expansion these fields are ids, which contain neither the payment status nor the next plan.
SUBSCRIPTION_PARTS = ["latest_invoice", "schedule"]
INVOICE_PARTS = ["payments"]


class StripeQueries(StripeReader):
    def __init__(self, api: StripeApi) -> None:
        self._api = api

    async def subscription(self, subscription_id: str) -> SubscriptionSnapshot | None:
        found = await self._api.find(f"/v1/subscriptions/{subscription_id}", expand=SUBSCRIPTION_PARTS)
        return None if found is None else subscription_of(found)

    async def invoice(self, invoice_id: str) -> InvoiceSnapshot | None:
        found = await self._api.find(f"/v1/invoices/{invoice_id}", expand=INVOICE_PARTS)
        return None if found is None else invoice_of(found)

    async def checkout(self, session_id: str) -> CheckoutSnapshot | None:
        found = await self._api.find(f"/v1/checkout/sessions/{session_id}")
        return None if found is None else checkout_of(found)

    async def refunds_of(self, charge_id: str) -> list[ReversalSnapshot]:
        return [refund_of(found) async for found in self._api.pages("/v1/refunds", charge=charge_id)]

    async def dispute(self, dispute_id: str) -> ReversalSnapshot | None:
        found = await self._api.find(f"/v1/disputes/{dispute_id}")
        return None if found is None else dispute_of(found)

    async def subscriptions(self) -> AsyncIterator[SubscriptionSnapshot]:
        parts = [f"data.{name}" for name in SUBSCRIPTION_PARTS]
        async for found in self._api.pages("/v1/subscriptions", status="all", expand=parts):
            yield subscription_of(found)

    def invoices(self, *, since: datetime) -> AsyncIterator[InvoiceSnapshot]:
        return self._invoices(created=_between(since))

    def invoices_of(self, subscription_id: str) -> AsyncIterator[InvoiceSnapshot]:
        return self._invoices(subscription=subscription_id)

    async def _invoices(self, **which: Any) -> AsyncIterator[InvoiceSnapshot]:  # noqa: ANN401  JSON
        parts = [f"data.{name}" for name in INVOICE_PARTS]
        async for found in self._api.pages("/v1/invoices", **which, expand=parts):
            yield invoice_of(found)

    async def events(self, *, since: datetime, until: datetime) -> AsyncIterator[RawEvent]:
        async for found in self._api.pages("/v1/events", created=_between(since, until)):
            yield _event_of(found)


def _between(since: datetime, until: datetime | None = None) -> dict[str, Any]:
    bounds = {"gte": int(since.timestamp())}
    return bounds if until is None else {**bounds, "lte": int(until.timestamp())}


def _event_of(document: Json) -> RawEvent:
    return RawEvent(
        id=required(text(document.get("id")), "event", "id"),
        type=required(text(document.get("type")), "event", "type"),
        created_at=(instant(document.get("created")) or datetime.now(UTC)),
        payload=msgspec.json.encode(document),
    )

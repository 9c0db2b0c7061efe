"""Stripe adapter for prices, customers, checkout sessions and the customer portal."""

import hashlib
from typing import Any
from uuid import UUID

from features.billing.application.ports import CheckoutProvider
from features.billing.domain.catalog import Offer
from features.billing.domain.errors import CheckoutCompleted, PaymentsRefused
from features.billing.domain.subscriptions import Checkout, OpenSession
from infrastructure.payments.json_fields import Json, instant, listed, required, text
from infrastructure.payments.stripe_client import StripeApi
from infrastructure.payments.stripe_mapping import checkout_of
from shared.ids import AccountId


class StripeCheckout(CheckoutProvider):
    def __init__(self, api: StripeApi) -> None:
        self._api = api

    async def publish(self, offer: Offer) -> str:
        found = await self._api.get("/v1/prices", lookup_keys=[offer.lookup_key], active=True, limit=1)
        prices = listed({"page": found}, "page")
        if prices:
            return _id_of(prices[0], "price")
        recurring = {"recurring": {"interval": "month"}} if offer.kind == "plan" else {}
        made = await self._api.post(
            "/v1/prices",
            f"publish:{offer.lookup_key}",
            currency=offer.currency,
            unit_amount=offer.price_cents,
            lookup_key=offer.lookup_key,
            product_data={"name": offer.title, "metadata": {offer.kind: offer.name}},
            metadata={offer.kind: offer.name, "credits": offer.credits},
            **recurring,
        )
        return _id_of(made, "price")

    async def open_customer(self, account_id: AccountId, *, email: str) -> str:
        address = {"email": email} if email else {}
        # The key contains the address because Stripe rejects one idempotency key with two different bodies.
        digest = hashlib.sha256(email.encode()).hexdigest()[:16]
        made = await self._api.post(
            "/v1/customers",
            f"customer:{account_id}:{digest}",
            metadata={"account_id": str(account_id)},
            **address,
        )
        return _id_of(made, "customer")

    async def open_checkout(self, checkout: Checkout, *, customer_id: str, price_id: str) -> OpenSession:
        metadata = {
            "account_id": str(checkout.account_id),
            "checkout_id": str(checkout.id),
            "credits": str(checkout.credits if checkout.pack is not None else 0),
        }
        mode = "payment" if checkout.pack is not None else "subscription"
        # The created subscription or payment carries the same metadata. A pack needs invoice_creation;
        # a subscription always has an invoice.
        made_by_it: dict[str, Any] = {"subscription_data": {"metadata": metadata}}
        if checkout.pack is not None:
            made_by_it = {
                "payment_intent_data": {"metadata": metadata},
                "invoice_creation": {"enabled": True},
            }
        made = await self._api.post(
            "/v1/checkout/sessions",
            f"checkout:{checkout.id}:{customer_id}:{price_id}",
            mode=mode,
            customer=customer_id,
            client_reference_id=str(checkout.account_id),
            line_items=[{"price": price_id, "quantity": 1}],
            metadata=metadata,
            success_url=checkout.success_url,
            cancel_url=checkout.cancel_url,
            **made_by_it,
        )
        return OpenSession(
            id=_id_of(made, "checkout session"),
            url=required(text(made.get("url")), "checkout session", "url"),
            expires_at=required(instant(made.get("expires_at")), "checkout session", "expires_at"),
        )

    async def expire_checkout(self, session_id: str) -> None:
        path = f"/v1/checkout/sessions/{session_id}"
        try:
            await self._api.post(f"{path}/expire", f"expire:{session_id}")
        except PaymentsRefused:
            # Stripe rejects the expiry of a closed session; only a paid one is an error.
            if checkout_of(await self._api.get(path)).status == "complete":
                raise CheckoutCompleted from None

    async def open_portal(self, customer_id: str, *, return_url: str, key: UUID) -> str:
        made = await self._api.post(
            "/v1/billing_portal/sessions", f"portal:{key}", customer=customer_id, return_url=return_url
        )
        return required(text(made.get("url")), "portal session", "url")


def _id_of(document: Json, kind: str) -> str:
    return required(text(document.get("id")), kind, "id")

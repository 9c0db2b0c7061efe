from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from features.billing.application.catalog import Catalog
from features.billing.application.ports import BillingQueries, CheckoutProvider, Orders, StripeReader
from features.billing.domain.catalog import Offer, offer_of
from features.billing.domain.errors import (
    CheckoutClosed,
    CheckoutNotFound,
    NoSubscription,
    ReturnAddressForeign,
    StripeObjectMissing,
)
from features.billing.domain.subscriptions import AccountBilling, Checkout, OpenSession, Order
from shared.caller import Caller

RIVALS_MAX = 5


@dataclass(frozen=True, slots=True)
class Checkouts:
    """Stripe checkout sessions for plans and packs. Credits are granted later, by Stripe's events."""

    queries: BillingQueries
    orders: Orders
    catalog: Catalog
    checkout_provider: CheckoutProvider
    stripe_reader: StripeReader
    frontend_url: str

    async def open_plan(
        self, caller: Caller, checkout_id: UUID, plan: str, *, success_url: str | None, cancel_url: str | None
    ) -> Checkout:
        """Return the account's open checkout if it is for the same plan; expire one for another plan first.
        An account therefore has at most one payable plan checkout. Idempotent by ``checkout_id``.
        """
        billing = await self.queries.billing(caller)
        offer = offer_of(await self.catalog.sold_plan(plan))
        billing.check_unsubscribed()
        order = self._order(caller, billing, checkout_id, offer, success_url, cancel_url)
        for _ in range(RIVALS_MAX):
            checkout = await self.orders.begin(order)
            if checkout.id == order.id:
                return await self._opened(caller, billing, checkout, offer)
            if checkout.is_for(order) and await self._is_payable(checkout):
                return await self._opened(caller, billing, checkout, offer)
            await self._expire(checkout)
        raise CheckoutClosed

    async def open_pack(
        self, caller: Caller, checkout_id: UUID, pack: str, *, success_url: str | None, cancel_url: str | None
    ) -> Checkout:
        billing = await self.queries.billing(caller)
        offer = offer_of(await self.catalog.pack(pack))
        order = self._order(caller, billing, checkout_id, offer, success_url, cancel_url)
        return await self._opened(caller, billing, await self.orders.begin(order), offer)

    async def get(self, caller: Caller, checkout_id: UUID) -> Checkout:
        checkout = await self.queries.checkout(caller, checkout_id)
        if checkout is None:
            raise CheckoutNotFound
        return checkout

    async def portal(self, caller: Caller, key: UUID, *, return_url: str | None) -> str:
        billing = await self.queries.billing(caller)
        if billing.stripe_customer_id is None:
            raise NoSubscription
        address = self._own_address("return_url", return_url, "/billing")
        return await self.checkout_provider.open_portal(
            billing.stripe_customer_id, return_url=address, key=key
        )

    async def _opened(
        self, caller: Caller, billing: AccountBilling, checkout: Checkout, offer: Offer
    ) -> Checkout:
        if checkout.status not in ("opening", "open"):
            raise CheckoutClosed
        if checkout.url is not None:
            return checkout
        customer_id = billing.stripe_customer_id
        if customer_id is None:
            made = await self.checkout_provider.open_customer(billing.account_id, email=caller.email)
            customer_id = await self.orders.store_customer(billing.account_id, made)
        price_id = await self.catalog.price_id(offer)
        try:
            session = await self.checkout_provider.open_checkout(
                checkout, customer_id=customer_id, price_id=price_id
            )
        except StripeObjectMissing:
            session = await self._session_at_another_stripe(caller, checkout, offer, customer_id)
        opened = await self.orders.opened(checkout, session)
        if opened is None:  # a concurrent request for another plan closed it, so its session must not be paid
            await self.checkout_provider.expire_checkout(session.id)
            raise CheckoutClosed
        return opened

    async def _session_at_another_stripe(
        self, caller: Caller, checkout: Checkout, offer: Offer, unknown_id: str
    ) -> OpenSession:
        """Recreate customer and price: the stored ids are from another Stripe (simulator, test key)."""
        made = await self.checkout_provider.open_customer(checkout.account_id, email=caller.email)
        customer_id = await self.orders.replace_customer(checkout.account_id, unknown_id, made)
        price_id = (await self.catalog.published(offer)).price_id
        return await self.checkout_provider.open_checkout(
            checkout, customer_id=customer_id, price_id=price_id
        )

    async def _is_payable(self, checkout: Checkout) -> bool:
        """A checkout without a Stripe session is payable; otherwise Stripe's session status decides."""
        if checkout.stripe_session_id is None:
            return True
        found = await self.stripe_reader.checkout(checkout.stripe_session_id)
        return found is not None and found.status == "open"

    async def _expire(self, checkout: Checkout) -> None:
        """Raises CheckoutCompleted when the session is already paid."""
        if checkout.stripe_session_id is not None:
            await self.checkout_provider.expire_checkout(checkout.stripe_session_id)
        await self.orders.close(checkout, "expired")

    def _order(
        self,
        caller: Caller,
        billing: AccountBilling,
        checkout_id: UUID,
        offer: Offer,
        success_url: str | None,
        cancel_url: str | None,
    ) -> Order:
        is_plan = offer.kind == "plan"
        return Order(
            id=checkout_id,
            account_id=billing.account_id,
            user_id=caller.user_id,
            plan=offer.name if is_plan else None,
            pack=None if is_plan else offer.name,
            credits=offer.credits,
            price_cents=offer.price_cents,
            currency=offer.currency,
            success_url=self._own_address(
                "success_url", success_url, f"/billing?checkout={checkout_id}&outcome=success"
            ),
            cancel_url=self._own_address(
                "cancel_url", cancel_url, f"/billing?checkout={checkout_id}&outcome=cancelled"
            ),
        )

    def _own_address(self, field: str, address: str | None, path: str) -> str:
        """Accept only addresses of the frontend, to prevent an open redirect after the payment."""
        own = urlsplit(self.frontend_url)
        if address is None:
            return self.frontend_url + path
        try:
            parts = urlsplit(address)
        except ValueError:
            parts = urlsplit("")
        is_own = (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
        if not is_own or not address.isascii() or not address.isprintable() or "\\" in address:
            raise ReturnAddressForeign(field=field, origin=f"{own.scheme}://{own.netloc}")
        return address

"""Test customer that buys over HTTP and pays at the simulated Stripe."""

import uuid
from dataclasses import dataclass
from typing import Any

import httpx

from core.wiring.slice import Resources
from infrastructure.database.billing.subscriptions import PostgresSubscriptionRepository

BILLING = "/v1/billing"


@dataclass
class Customer:
    """A caller with an account. Stripe's events are not delivered; hear() applies Stripe's state."""

    http: httpx.AsyncClient
    headers: dict[str, str]
    account_id: uuid.UUID
    resources: Resources
    control: httpx.AsyncClient
    owner: Any

    @property
    def stripe_reader(self):
        return self.resources.payments.stripe_reader

    @property
    def repository(self):
        return PostgresSubscriptionRepository(self.resources.database.admin("tests"))

    async def get(self, path):
        return await self.http.get(f"{BILLING}{path}", headers=self.headers)

    async def post(self, path, body=None, **headers):
        kwargs = {} if body is None else {"json": body}
        return await self.http.post(f"{BILLING}{path}", headers={**self.headers, **headers}, **kwargs)

    async def done(self, path, body=None):
        answer = await self.post(path, body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def session_of(self, checkout):
        return await self.owner.fetchval(
            "select stripe_session_id from checkouts where id = $1", uuid.UUID(checkout["checkout_id"])
        )

    async def pay(self, checkout):
        """Pay the checkout and return Stripe's snapshot of it."""
        session_id = await self.session_of(checkout)
        answer = await self.control.post(f"/sessions/{session_id}/pay", json={})
        assert answer.status_code == 200, answer.text
        return await self.stripe_reader.checkout(session_id)

    async def hear(self, subscription_id):
        """Apply the subscription's current state, as the processing of an event would."""
        seen_at = await self.repository.now()
        snapshot = await self.stripe_reader.subscription(subscription_id)
        return await self.repository.apply_subscription(self.account_id, snapshot, seen_at)

    async def subscribe(self, plan):
        paid = await self.pay(await self.done("/checkout", {"plan": plan}))
        await self.hear(paid.subscription_id)
        return paid.subscription_id

    async def change(self, plan, **headers):
        preview = await self.done("/change-plan/preview", {"plan": plan})
        body = {"plan": plan, "preview_id": preview["preview_id"]}
        return await self.post("/change-plan", body, **headers)

    async def subscription(self):
        return (await self.get("/subscription")).json()

    async def credits(self):
        answer = await self.http.get("/v1/credits/balance", headers=self.headers)
        return answer.json()["credits_available"]

    async def decline(self, times=1):
        customer_id = await self.owner.fetchval(
            "select stripe_customer_id from billing_customers where account_id = $1", self.account_id
        )
        answer = await self.control.post("/declines", json={"customer": customer_id, "times": times})
        assert answer.status_code == 204, answer.text

    async def fault(self, route, status):
        """Make the simulated Stripe fail once on the route."""
        address = str(self.control.base_url).replace("/_stripe/", "/_faults")
        fault = {"route": f"/stripe/v1/{route}", "kind": "status", "times": 1, "status": status}
        answer = await self.control.post(address, json=fault)
        assert answer.is_success, answer.text

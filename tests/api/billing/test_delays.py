"""Every purchase flow while requests to Stripe and its webhooks take 0 to 300 ms, in any order."""

import asyncio
import uuid
from datetime import timedelta

import asyncpg
import httpx
import pytest

from core.wiring.application import build
from core.wiring.bootstrap import local_issuer, read_runtime
from core.wiring.slices.billing import event_worker
from infrastructure.payments.stripe_subscriptions import StripeSubscriptions
from simulators.stripe.events.events import SECRET
from tests.api.billing.customers import Customer
from tests.api.billing.delays import EVENTS_PATH, DelayingProxy
from tests.conftest import client_for, copy_of
from tests.support import until

MONTH_S = 32 * 86_400
SUBSCRIBED = """
select stripe_subscription_id from subscriptions
where account_id = $1 and clock = 'stripe' and ended_at is null
"""
WAITING = "select count(*) from webhook_events where status in ('pending', 'parked')"
DUE_NOW = "update webhook_events set due_at = clock_timestamp() where status = 'parked'"


@pytest.fixture(scope="module")
async def stripe_proxy(simulator_process):
    async with DelayingProxy(f"{simulator_process.address}/stripe") as proxy:
        yield proxy
    await simulator_process.reset()


@pytest.fixture(scope="module")
async def delayed_addresses(cluster, template):
    async with copy_of(cluster, template) as addresses:
        yield addresses


@pytest.fixture(scope="module")
async def delayed_owner(delayed_addresses):
    owner = await asyncpg.connect(delayed_addresses.owner)
    await owner.execute("update rate_limits set requests_max = 1000000000")
    yield owner
    await owner.close()


@pytest.fixture(scope="module")
async def delayed(stripe_proxy, delayed_addresses, tmp_path_factory):
    """The application with its Stripe event worker, connected to Stripe only through the proxy."""
    place = read_runtime(
        {
            "OSLIRA_ENVIRONMENT": "local",
            "DATABASE_URL": delayed_addresses.owner,
            "OSLIRA_DATA_DIR": str(tmp_path_factory.mktemp("delayed")),
            "STRIPE_SECRET_KEY": "sk_test_delayed",
            "STRIPE_API_URL": stripe_proxy.url,
            "STRIPE_WEBHOOK_SECRETS": SECRET,
        }
    )
    async with build(place) as application, client_for(application) as client:
        stripe_proxy.application = client
        endpoint = {"url": stripe_proxy.url + EVENTS_PATH, "enabled_events": ["*"]}
        await application.resources.payments.api.post("/v1/webhook_endpoints", "endpoint", **endpoint)
        stopping = asyncio.Event()
        consumer = asyncio.create_task(event_worker(application.resources)["stripe_events"](stopping))
        yield application, client
        stopping.set()
        await consumer


class DelayedCustomer(Customer):
    async def subscribe(self, plan):
        """Pay a checkout; return when the event has been applied."""
        await self.pay(await self.done("/checkout", {"plan": plan}))
        await until(lambda: self._has(plan=plan))

    async def buy_credits(self):
        paid = await self.pay(await self.done("/checkout", {"pack": "small"}))
        await self.settle()
        return paid.payment_id

    async def advance_month(self):
        (await self.control.post("/advance", json={"seconds": MONTH_S})).raise_for_status()
        await self.settle()

    async def settle(self):
        """Wait until every event is delivered and processed."""
        await until(self._is_settled)

    async def leave(self):
        """End the subscription, because later tests would renew it too."""
        subscription_id = await self.owner.fetchval(SUBSCRIBED, self.account_id)
        if subscription_id is not None:
            await StripeSubscriptions(self.resources.payments.api).cancel_now(subscription_id)
        await self.settle()

    async def plans(self):
        """The plan, the next one, and whether the subscription is going to end."""
        shown = await self.subscription()
        return shown["plan"], shown["next_plan"], shown["cancels_at"] is not None

    async def _has(self, **fields):
        shown = await self.subscription()
        return fields.items() <= shown.items()

    async def _is_settled(self):
        deliveries = (await self.control.get("/deliveries")).json()
        await self.owner.execute(DUE_NOW)
        is_delivered = all(delivery["status"] == "delivered" for delivery in deliveries)
        return is_delivered and not await self.owner.fetchval(WAITING)


@pytest.fixture
async def delayed_customer(delayed, delayed_owner, simulator_process, stripe_proxy):
    application, client = delayed
    token = local_issuer(application.settings).token(
        f"{uuid.uuid4().hex}@example.com", lifetime=timedelta(hours=1)
    )
    headers = {"Authorization": f"Bearer {token}"}
    balance = (await client.get("/v1/credits/balance", headers=headers)).json()
    control_url = f"{simulator_process.address}/_stripe"
    async with httpx.AsyncClient(base_url=control_url, timeout=30) as control:
        customer = DelayedCustomer(
            *(client, headers, uuid.UUID(balance["account_id"])),
            *(application.resources, control, delayed_owner),
        )
        yield customer
        stripe_proxy.delay(0, seed=0)
        await customer.leave()


async def checkout(customer):
    before = await customer.credits()
    opened = await customer.done("/checkout", {"plan": "growth"})
    await customer.pay(opened)
    await customer.settle()

    assert await customer.plans() == ("growth", None, False)
    assert await customer.credits() - before == 250
    assert (await customer.get(f"/checkouts/{opened['checkout_id']}")).json()["status"] == "completed"
    assert [item["status"] for item in (await customer.get("/invoices")).json()["items"]] == ["paid"]


async def renewal(customer):
    before = await customer.credits()
    await customer.subscribe("growth")
    await customer.advance_month()

    assert await customer.plans() == ("growth", None, False)
    assert await customer.credits() - before == 2 * 250


async def upgrade(customer):
    before = await customer.credits()
    await customer.subscribe("growth")
    changed = (await customer.change("pro")).json()
    await customer.settle()

    assert (changed["plan"], changed["credits_granted"]) == ("pro", 1500)
    assert await customer.plans() == ("pro", None, False)
    assert await customer.credits() - before == 1500


async def downgrade(customer):
    await customer.subscribe("pro")
    changed = (await customer.change("growth")).json()
    await customer.settle()

    assert (changed["plan"], changed["next_plan"]) == ("pro", "growth")
    assert await customer.plans() == ("pro", "growth", False)
    await customer.advance_month()
    assert (await customer.plans())[0] == "growth"


async def withdrawn_downgrade(customer):
    await customer.subscribe("pro")
    await customer.change("growth")
    resumed = await customer.done("/resume")
    await customer.settle()

    assert resumed["next_plan"] is None
    assert await customer.plans() == ("pro", None, False)


async def cancellation(customer):
    await customer.subscribe("growth")
    cancelled = await customer.done("/cancel")
    await customer.settle()

    assert cancelled["cancels_at"] == cancelled["period_end"]
    assert await customer.plans() == ("growth", None, True)
    await customer.advance_month()
    assert (await customer.subscription())["plan"] == "free"


async def resumption(customer):
    await customer.subscribe("growth")
    await customer.done("/cancel")
    resumed = await customer.done("/resume")
    await customer.settle()

    assert resumed["cancels_at"] is None
    assert await customer.plans() == ("growth", None, False)


async def refund(customer):
    before = await customer.credits()
    payment_id = await customer.buy_credits()
    assert await customer.credits() - before == 100
    await customer.control.post("/refunds", json={"payment": payment_id, "amount": 750})
    await customer.settle()

    assert await customer.credits() - before == 50


async def dispute(customer):
    before = await customer.credits()
    payment_id = await customer.buy_credits()
    opened = (await customer.control.post("/disputes", json={"payment": payment_id})).json()
    await customer.settle()
    assert await customer.credits() == before
    await customer.control.post(f"/disputes/{opened['id']}/close", json={"is_won": True})
    await customer.settle()

    assert await customer.credits() - before == 100


FLOWS = [
    *(checkout, renewal, upgrade, downgrade, withdrawn_downgrade),
    *(cancellation, resumption, refund, dispute),
]
every_flow = pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)


@every_flow
async def test_purchase_flow_with_short_random_delays(delayed_customer, stripe_proxy, flow):
    stripe_proxy.delay(0.03, seed=flow.__name__)

    await flow(delayed_customer)


@pytest.mark.battery
@pytest.mark.parametrize("seed", range(10))
@every_flow
async def test_purchase_flow_with_delays_up_to_300_ms(delayed_customer, stripe_proxy, flow, seed):
    stripe_proxy.delay(0.3, seed=f"{flow.__name__} {seed}")

    await flow(delayed_customer)

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from core.webhooks.incoming import StripeEventWorker
from core.wiring.slices.billing import stripe_event_processor
from features.billing.application.stripe_events.process import StripeEventProcessor
from features.billing.domain.stripe_events import read_event
from infrastructure.database.billing.stripe_events import PostgresStripeEvents
from tests.integration.database.billing.conftest import prices
from tests.system.stripe_events.stripe_world import World, id_of

__all__ = ["prices"]

BALANCE = "select credits_available from credit_accounts where account_id = $1"


@dataclass
class Desk:
    """Stores and processes Stripe events sequentially, without a background worker."""

    owner: Any
    events: PostgresStripeEvents
    processor: StripeEventProcessor

    async def receive(self, *payloads):
        for payload in payloads:
            await self.events.add(read_event(payload))

    async def work(self):
        """Process until no event is due; return the endings in processing order."""
        endings = []
        while claimed := await self.processor.queue.claim(1):
            endings.append((await self.processor.process(claimed[0]))[0])
        return endings

    async def process_all(self, *payloads):
        """Store the events and process all due events."""
        await self.receive(*payloads)
        return await self.work()

    async def time_passes(self):
        """Make all pending and parked events due."""
        await self.owner.execute(
            "update webhook_events set due_at = clock_timestamp() where status in ('pending', 'parked')"
        )

    async def row(self, payload):
        return await self.owner.fetchrow(
            "select * from webhook_events where stripe_event_id = $1", id_of(payload)
        )

    async def status(self, payload):
        return (await self.row(payload))["status"]

    async def balance(self, account_id):
        return await self.owner.fetchval(BALANCE, account_id)


@pytest.fixture(autouse=True)
async def empty_inbox(owner):
    """Empty the inbox, so that a test claims only its own events."""
    await owner.execute("delete from webhook_events")


@pytest.fixture
def world():
    return World()


@pytest.fixture
def inbox(owner, database, world):
    session = database.admin("tests")
    return Desk(owner, PostgresStripeEvents(database), stripe_event_processor(session, world))


@pytest.fixture
async def customer(owner, tenant):
    """Stripe customer id of the tenant."""
    customer_id = f"cus_{uuid.uuid4().hex}"
    await owner.execute("insert into billing_customers values ($1, $2)", tenant.account_id, customer_id)
    return customer_id


@pytest.fixture
async def consuming(inbox):
    """Run a StripeEventWorker and yield the event that wakes it."""
    arrivals, stopping = asyncio.Event(), asyncio.Event()
    consumer = StripeEventWorker(inbox.processor, arrivals)
    task = asyncio.create_task(consumer.run(stopping))
    yield arrivals
    stopping.set()
    await task

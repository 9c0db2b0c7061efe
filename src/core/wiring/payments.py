"""The way to Stripe: the real one, or the simulator, which is told where we listen for its events."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from core.serving import Serving
from core.wiring.outside import Outside
from core.wiring.place import Surroundings
from features.billing.application.ports import StripeRecords, SubscriptionLocks
from infrastructure.access import Access, Where
from infrastructure.database.leases import PostgresSlots
from infrastructure.database.sessions import Database
from infrastructure.database.subscription_locks import LeasedSubscriptionLocks
from infrastructure.payments.stripe_desk import StripeDesk
from infrastructure.payments.stripe_records import StripeLookups
from infrastructure.simulators.stripe.registration import Registration
from infrastructure.simulators.supervisor import Simulators

EVENTS_PATH = "/v1/webhooks/stripe"


@dataclass(frozen=True, slots=True)
class Payments:
    desk: StripeDesk
    records: StripeRecords | None  # None: there is no Stripe here
    locks: SubscriptionLocks


@asynccontextmanager
async def open_payments(
    place: Surroundings, database: Database, simulators: Simulators, serving: Serving
) -> AsyncGenerator[Payments]:
    where = _stripe(Outside(place, simulators), serving)
    desk = StripeDesk(where)
    slots = PostgresSlots(database, jitter=min)  # a person waits: look as often as is allowed
    try:
        yield Payments(desk, None if where is None else StripeLookups(desk), LeasedSubscriptionLocks(slots))
    finally:
        await slots.close()
        await desk.close()


def _stripe(outside: Outside, serving: Serving) -> Where | None:
    where = outside.where("stripe")
    return _introduced(where, serving) if where is not None and outside.is_simulated("stripe") else where


def _introduced(where: Where, serving: Serving) -> Where:
    """Stripe's own address of us is set in its dashboard; a simulator has to be told, before anything happens
    that it would tell of.
    """
    registration = Registration()

    async def introduced() -> Access:
        access = await where()
        if serving.address is not None:
            await registration.ensure(access.url, serving.address + EVENTS_PATH)
        return access

    return introduced

"""Stripe client, connected to Stripe or to the simulator, which has our webhook URL registered."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from core.processes.listen_address import ListenAddress
from core.wiring.bootstrap import Runtime
from core.wiring.provider_endpoints import ProviderEndpoints
from features.billing.application.ports import StripeReader, SubscriptionLocks
from infrastructure.database.billing.subscription_locks import LeasedSubscriptionLocks
from infrastructure.database.clients import Database
from infrastructure.database.semaphore import PostgresSemaphore
from infrastructure.payments.stripe_client import StripeApi
from infrastructure.payments.stripe_queries import StripeQueries
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint
from simulators.stripe.events.registration import Registration
from simulators.supervisor import Simulators

EVENTS_PATH = "/v1/webhooks/stripe"


@dataclass(frozen=True, slots=True)
class Payments:
    api: StripeApi
    stripe_reader: StripeReader | None  # None if Stripe is not configured
    locks: SubscriptionLocks


@asynccontextmanager
async def open_payments(
    place: Runtime, database: Database, simulators: Simulators, serving: ListenAddress
) -> AsyncGenerator[Payments]:
    where = _stripe(ProviderEndpoints(place, simulators), serving)
    api = StripeApi(where)
    slots = PostgresSemaphore(database, jitter=min)  # a user waits, so poll at the shortest interval
    try:
        yield Payments(api, None if where is None else StripeQueries(api), LeasedSubscriptionLocks(slots))
    finally:
        await api.close()


def _stripe(outside: ProviderEndpoints, serving: ListenAddress) -> EndpointResolver | None:
    where = outside.where("stripe")
    return _introduced(where, serving) if where is not None and outside.is_simulated("stripe") else where


def _introduced(where: EndpointResolver, serving: ListenAddress) -> EndpointResolver:
    """Registers our webhook URL with the simulator before the first call, so that no event is lost. Stripe
    itself has the URL from its dashboard.
    """
    registration = Registration()

    async def introduced() -> ProviderEndpoint:
        access = await where()
        if serving.address is not None:
            await registration.ensure(access.url, serving.address + EVENTS_PATH)
        return access

    return introduced

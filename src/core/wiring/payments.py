"""Stripe client, connected to Stripe or to the simulator, which has our webhook URL registered."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from core.processes.listen_address import ListenAddress
from core.wiring.bootstrap import Runtime
from core.wiring.providers import ProviderEndpoints
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
    runtime: Runtime, database: Database, simulators: Simulators, listen_address: ListenAddress
) -> AsyncGenerator[Payments]:
    where = _stripe(ProviderEndpoints(runtime, simulators), listen_address)
    api = StripeApi(where)
    slots = PostgresSemaphore(database, jitter=min)  # a user waits, so poll at the shortest interval
    try:
        yield Payments(api, None if where is None else StripeQueries(api), LeasedSubscriptionLocks(slots))
    finally:
        await api.close()


def _stripe(outside: ProviderEndpoints, listen_address: ListenAddress) -> EndpointResolver | None:
    where = outside.where("stripe")
    return (
        _registered(where, listen_address) if where is not None and outside.is_simulated("stripe") else where
    )


def _registered(where: EndpointResolver, listen_address: ListenAddress) -> EndpointResolver:
    """Registers our webhook URL with the simulator before the first call, so that no event is lost. Stripe
    itself has the URL from its dashboard.
    """
    registration = Registration()

    async def registered() -> ProviderEndpoint:
        access = await where()
        if listen_address.address is not None:
            await registration.ensure(access.url, listen_address.address + EVENTS_PATH)
        return access

    return registered

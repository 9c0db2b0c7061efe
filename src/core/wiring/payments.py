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
    runtime: Runtime, database: Database, simulators: Simulators, listen_address: ListenAddress
) -> AsyncGenerator[Payments]:
    resolver = _stripe(ProviderEndpoints(runtime, simulators), listen_address)
    api = StripeApi(resolver)
    slots = PostgresSemaphore(database, jitter=min)  # a user waits, so poll at the shortest interval
    try:
        yield Payments(api, None if resolver is None else StripeQueries(api), LeasedSubscriptionLocks(slots))
    finally:
        await api.close()


def _stripe(endpoints: ProviderEndpoints, listen_address: ListenAddress) -> EndpointResolver | None:
    resolver = endpoints.resolver("stripe")
    if resolver is None or not endpoints.is_simulated("stripe"):
        return resolver
    return _registered(resolver, listen_address)


def _registered(resolver: EndpointResolver, listen_address: ListenAddress) -> EndpointResolver:
    """Registers our webhook URL with the simulator before the first call, so that no event is lost. Stripe
    itself has the URL from its dashboard.
    """
    registration = Registration()

    async def registered() -> ProviderEndpoint:
        endpoint = await resolver()
        if listen_address.address is not None:
            await registration.ensure(endpoint.url, listen_address.address + EVENTS_PATH)
        return endpoint

    return registered

"""Endpoints of the providers: the real ones with our keys, or the simulators on this machine."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from core.settings.providers import ProviderSettings
from core.settings.settings import read_settings
from core.wiring.bootstrap import Runtime
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint
from simulators.supervisor import Simulators

REMEMBERED_FOR_S = 10.0
SIMULATED_KEY = "simulated"  # only simulators accept it
# Paths below the simulators' address.
PATHS = {
    "openai": "/openai/v1",
    "anthropic": "/anthropic",
    "apify": "/apify",
    "scraperapi": "/scraperapi",
    "stripe": "/stripe",
}


@asynccontextmanager
async def simulators_of(place: Runtime) -> AsyncGenerator[Simulators]:
    """One process serves all simulators. It starts when one of them is needed first."""
    identity = place.settings.identity
    scale = str(place.settings.providers.simulated_latency)
    simulators = Simulators((str(place.settings.data_dir), identity.issuer, identity.audience, scale))
    try:
        yield simulators
    finally:
        await simulators.close()


class ProviderEndpoints:
    def __init__(self, place: Runtime, simulators: Simulators) -> None:
        self._place = place
        self._simulators = simulators
        self._providers = place.settings.providers
        self._read_at_s = time.monotonic()

    def where(self, provider: str) -> EndpointResolver | None:
        """Returns None if the provider is neither configured nor simulated."""
        if provider in self._providers.real:

            async def real() -> ProviderEndpoint:
                providers = await self._current()
                return ProviderEndpoint(providers.addresses.get(provider, ""), providers.keys[provider])

            return real
        if provider not in self._providers.simulated or self._place.settings.environment == "production":
            return None

        async def simulated() -> ProviderEndpoint:
            address = await self._simulators.address()
            return ProviderEndpoint(address + PATHS[provider], SIMULATED_KEY, is_simulated=True)

        return simulated

    def is_simulated(self, provider: str) -> bool:
        return provider in self._providers.simulated

    async def _current(self) -> ProviderSettings:
        """Reads the settings from the secrets manager again, because a key may have been rotated. If a
        provider's key was removed, the previous settings stay in use until the process ends.
        """
        if self._place.secrets is not None and time.monotonic() - self._read_at_s > REMEMBERED_FOR_S:
            self._read_at_s = time.monotonic()
            current = (await asyncio.to_thread(read_settings, self._place.lookup)).providers
            if self._providers.real <= current.real:
                self._providers = current
        return self._providers

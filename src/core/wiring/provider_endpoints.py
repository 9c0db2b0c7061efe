"""Endpoints of the paid providers: the configured address and key, or a simulator's."""

from core.wiring.bootstrap import Runtime
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint
from simulators.supervisor import Simulators

SIMULATED_KEY = "simulated"  # only simulators accept it
# Paths below the simulators' address.
PATHS = {
    "openai": "/openai/v1",
    "anthropic": "/anthropic",
    "apify": "/apify",
    "scraperapi": "/scraperapi",
    "stripe": "/stripe",
}


class ProviderEndpoints:
    def __init__(self, runtime: Runtime, simulators: Simulators) -> None:
        self._is_production = runtime.settings.environment == "production"
        self._settings = runtime.rotating_settings()
        self._simulators = simulators
        self._providers = runtime.settings.providers

    def resolver(self, provider: str) -> EndpointResolver | None:
        """Returns None if the provider is neither configured nor simulated."""
        if provider in self._providers.real:
            return lambda: self._real(provider)
        if provider in self._providers.simulated and not self._is_production:
            return lambda: self._simulated(provider)
        return None

    def is_simulated(self, provider: str) -> bool:
        return provider in self._providers.simulated

    async def _real(self, provider: str) -> ProviderEndpoint:
        """If a provider's key was removed, the previous settings stay in use until the process ends."""
        current = (await self._settings.current()).providers
        if self._providers.real <= current.real:
            self._providers = current
        return ProviderEndpoint(self._providers.addresses.get(provider, ""), self._providers.keys[provider])

    async def _simulated(self, provider: str) -> ProviderEndpoint:
        address = await self._simulators.address()
        return ProviderEndpoint(address + PATHS[provider], SIMULATED_KEY, is_simulated=True)

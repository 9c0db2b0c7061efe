"""Test interface of the simulated providers: address, faults, and recorded requests."""

from contextlib import asynccontextmanager

import httpx

from simulators.supervisor import Simulators

ISSUER, AUDIENCE = "http://127.0.0.1/auth/v1", "authenticated"


class SimulatedProviders:
    """One process. The ``simulators`` fixture resets all settings after each test."""

    def __init__(self, address, http):
        self.address = address
        self.http = http

    async def fault(self, route, kind="status", times=1, **options):
        """``times=None`` lasts until removed; the options are those of ``Fault``: status, code..."""
        await self._post("/_faults", {"route": route, "kind": kind, "times": times, **options})

    async def latency(self, *routes, scale=None):
        """``{"route": "/openai", "distribution": "fixed", "ms": 50}``, or a scale of the default times."""
        await self._post("/_latency", {"routes": routes, "scale": scale})

    async def settings(self, **values):
        """``apify_runs_max``, ``apify_run_ends``, ``gateway_token``."""
        await self._post("/_settings", values)

    async def state(self):
        """``requests`` and those ``under_way`` by method and route, ``apify`` counts, ``gateway`` calls."""
        return (await self.http.get("/_state")).raise_for_status().json()

    async def asked(self, route):
        """Returns the number of requests, as in ``asked("POST /openai/v1/responses")``."""
        return (await self.state())["requests"].get(route, 0)

    async def reset(self):
        for path in ("/_faults", "/_latency", "/_settings", "/_state", "/_stripe"):
            (await self.http.delete(path)).raise_for_status()

    async def _post(self, path, content):
        (await self.http.post(path, json=content)).raise_for_status()


@asynccontextmanager
async def simulated_providers(data_dir, *, latency_scale=0.0):
    process = Simulators((str(data_dir), ISSUER, AUDIENCE, str(latency_scale)))
    try:
        address = await process.address()
        async with httpx.AsyncClient(base_url=address, timeout=30) as http:
            yield SimulatedProviders(address, http)
    finally:
        await process.close()

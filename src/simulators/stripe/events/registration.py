"""Registration of a local server as webhook endpoint of the simulator."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import structlog

from simulators.faults.provider_requests import Document

DESCRIPTION = "A local server"
TIMEOUT_S = 5.0
HEADERS = {"Authorization": "Bearer simulated"}

log: structlog.stdlib.BoundLogger = structlog.get_logger("stripe")


class Registration:
    """Idempotent; calls the simulator only when one of the two addresses has changed."""

    def __init__(self) -> None:
        self._registered: tuple[str, str] | None = None
        self._lock = asyncio.Lock()

    async def ensure(self, stripe_url: str, endpoint_url: str) -> None:
        """Suppresses errors: they must not fail the caller's call to Stripe, and the next call retries."""
        if self._registered == (stripe_url, endpoint_url):
            return
        async with self._lock:
            if self._registered == (stripe_url, endpoint_url):
                return
            try:
                await _register(stripe_url, endpoint_url)
            except httpx.HTTPError as error:
                log.warning("endpoint_not_registered", reason=type(error).__name__)
            else:
                self._registered = (stripe_url, endpoint_url)


async def _register(stripe_url: str, endpoint_url: str) -> None:
    async with httpx.AsyncClient(
        base_url=stripe_url, headers=HEADERS, timeout=TIMEOUT_S, trust_env=False
    ) as http:
        response = await http.get("/v1/webhook_endpoints", params={"limit": 100})
        endpoints = response.raise_for_status().json()["data"]
        for endpoint in endpoints:
            if endpoint["url"] != endpoint_url and await _is_stopped(endpoint):
                await http.delete(f"/v1/webhook_endpoints/{endpoint['id']}")
        if any(endpoint["url"] == endpoint_url for endpoint in endpoints):
            return
        form = {"url": endpoint_url, "enabled_events[]": "*", "description": DESCRIPTION}
        (await http.post("/v1/webhook_endpoints", data=form)).raise_for_status()


async def _is_stopped(endpoint: Document) -> bool:
    """Returns whether the endpoint is a local server that no longer listens."""
    if endpoint["description"] != DESCRIPTION:
        return False
    parts = urlsplit(str(endpoint["url"]))
    with suppress(OSError):
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.close()
        return False
    return True

"""Rate limits per client address for requests that are refused: unsigned webhooks and unknown routes."""

from dataclasses import dataclass

from litestar.types import HTTPScope, Scope

from shared.middleware.client_address import client_address
from shared.middleware.rate_limits import FREE, RateLimits
from shared.middleware.request_context import context_of

UNKNOWN_ROUTE = "unknown_route"


@dataclass(frozen=True, slots=True)
class FailureRateLimit:
    rate_limits: RateLimits
    proxy_hops: int

    async def count(self, scope: HTTPScope, route_class: str) -> None:
        """Count the request against the client address. Raises TooManyRequests."""
        address = client_address(scope, self.proxy_hops)
        await self.rate_limits.count(context_of(scope), address, FREE, route_class)

    async def count_unknown_route(self, _error: Exception, scope: Scope) -> None:
        """Count a request that Litestar cannot route, because it does not reach RequestPipeline.

        Litestar calls this hook. HttpBoundary converts TooManyRequests to a response.
        """
        if scope["type"] == "http" and "route_handler" not in scope:
            await self.count(scope, UNKNOWN_ROUTE)

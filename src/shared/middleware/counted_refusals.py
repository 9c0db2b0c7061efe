"""A public route that counts only those whom it refuses: whoever proves who they are is never too many."""

from dataclasses import dataclass

from litestar.types import HTTPScope

from shared.middleware.client_address import client_address
from shared.middleware.passage import passage_of
from shared.middleware.rate_limits import FREE, RateLimits


@dataclass(frozen=True, slots=True)
class CountedRefusals:
    rate_limits: RateLimits
    proxy_hops: int

    async def count(self, scope: HTTPScope, route_class: str) -> None:
        """Against the caller's address. Raises TooManyRequests."""
        address = client_address(scope, self.proxy_hops)
        await self.rate_limits.count(passage_of(scope), address, FREE, route_class)

"""Rate limits: the limits are data, and all processes share the windows."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from litestar.types import HTTPScope, Scope

from shared.errors import RateLimited
from shared.middleware.client_address import client_address
from shared.middleware.request_context import RequestContext, context_of


@dataclass(frozen=True, eq=False)  # compared by identity, which is cheapest: each row is loaded once
class Limit:
    route_class: str
    requests_max: int
    window_s: int

    @cached_property
    def policy(self) -> tuple[bytes, bytes]:
        text = f'"{self.route_class}";q={self.requests_max};w={self.window_s}'
        return (b"ratelimit-policy", text.encode())


class Verdict(NamedTuple):
    is_granted: bool
    remaining: int
    reset_s: float  # until the oldest request leaves the window; set when nothing remains


class Limits(Protocol):
    async def find(self, plan: str, route_class: str) -> Limit | None:
        """Return the plan's limit or else that of the free plan; None: no limit applies."""
        ...


class Windows(Protocol):
    async def take(self, key: str, limit: Limit) -> Verdict:
        """Count one request. No span as long as the window contains more granted requests than the limit.

        A key must always be used with the same window.
        """
        ...


class TooManyRequests(RateLimited):
    code = "rate_limited"
    text = (
        "{limit} requests of class {route_class} in {window_seconds} seconds are allowed."
        " Try again in {retry_after_s} seconds."
    )
    public = ("route_class", "limit", "window_seconds", "retry_after_seconds")


FREE = "free"
UNKNOWN_ROUTE = "unknown_route"


@dataclass(frozen=True, slots=True)
class RateLimits:
    limits: Limits
    windows: Windows

    async def count(self, context: RequestContext, key: str, plan: str, route_class: str) -> None:
        """Count a request and set the RateLimit headers of the response. Raises TooManyRequests."""
        limit = await self.limits.find(plan, route_class)
        if limit is None:
            return
        # The window is part of the key, because slots of different lengths cannot be compared.
        verdict = await self.windows.take(f"{route_class}:{limit.window_s}:{key}", limit)
        if verdict.is_granted:
            state = f'"{route_class}";r={verdict.remaining}'
            context.response_headers = [limit.policy, (b"ratelimit", state.encode())]
            return
        retry_after_s = max(1, math.ceil(verdict.reset_s))
        state = f'"{route_class}";r=0;t={retry_after_s}'
        context.response_headers = [limit.policy, (b"ratelimit", state.encode())]
        raise TooManyRequests(
            route_class=route_class,
            limit=limit.requests_max,
            window_seconds=limit.window_s,
            retry_after_seconds=retry_after_s,
            retry_after_s=retry_after_s,
        )


@dataclass(frozen=True, slots=True)
class FailureRateLimit:
    """Rate limit per client address for rejected requests: unsigned webhooks and unknown routes."""

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

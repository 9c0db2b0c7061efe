"""Instagram's web profiles via ScraperAPI, with at most twelve posts."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from urllib.parse import urlencode

import httpx
import msgspec
import structlog

from features.analysis.application.ports import ProfileSource
from features.analysis.domain.errors import ProfilesUnavailable
from features.analysis.domain.profile.profile import Scrape
from infrastructure.monitoring.cost_tracker import CostTracker, ScrapeCost, ScrapeRequest
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint
from infrastructure.scraping.apify_mapping import MappedProfile
from infrastructure.scraping.errors import (
    ErrorKind,
    ScrapeError,
    ScrapeRetries,
    Sleep,
    caller_retry_after_s,
)
from infrastructure.scraping.web_profile_mapping import POSTS_MAX, read_web_profile
from infrastructure.tls import default_ssl_context
from shared.clock import Clock
from shared.llm import CostOwner
from shared.retry import retry_after_s

PROVIDER = "scraperapi"
API_URL = "https://api.scraperapi.com"
PROFILE_URL = "https://www.instagram.com/api/v1/users/web_profile_info/"
WEB_APP_ID = "936619743392459"  # sent by Instagram's own pages; required
RESPONSE_S = 75.0  # ScraperAPI itself tries for 70 s
SCRAPE_S = 240.0
BODY_BYTES_MAX = 8 * 1024 * 1024

log: structlog.stdlib.BoundLogger = structlog.get_logger("scraping")


class _Response(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes


class ScraperApiProfiles(ProfileSource):
    """Uses the bare transport, because the URL contains the key and httpx's client logs URLs."""

    def __init__(
        self,
        resolve_endpoint: EndpointResolver,
        costs: CostTracker,
        *,
        now: Clock,
        response_s: float = RESPONSE_S,
        scrape_s: float = SCRAPE_S,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._resolve_endpoint = resolve_endpoint
        self._costs = costs
        self._now = now
        self._response_s = response_s
        self._scrape_s = scrape_s
        self._sleep = sleep
        self._jitter = jitter
        self._transport: httpx.AsyncHTTPTransport | None = None

    async def fetch(self, username: str, *, posts_max: int, cost_owner: CostOwner) -> Scrape:
        assert posts_max <= POSTS_MAX, "it cannot show more"
        endpoint = await self._resolve_endpoint()
        request = ScrapeRequest(PROVIDER, username, posts_max, cost_owner, endpoint.is_simulated)
        try:
            async with asyncio.timeout(self._scrape_s):
                found = await self._find(endpoint, request)
        except (ScrapeError, TimeoutError) as error:
            _log_rejection(error)
            raise ProfilesUnavailable(username=username, retry_after_s=caller_retry_after_s(error)) from None
        return Scrape(
            outcome=found.outcome,
            profile=found.profile,
            posts_asked=posts_max,
            scraped_at=self._now(),
            provider=PROVIDER,
            is_simulated=endpoint.is_simulated,
        )

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None

    async def _find(self, endpoint: ProviderEndpoint, request: ScrapeRequest) -> MappedProfile:
        retries = ScrapeRetries(self._sleep, self._jitter)
        while True:
            try:
                return await self._attempt(endpoint, request)
            except ScrapeError as error:
                await retries.wait_after(error)

    async def _attempt(self, endpoint: ProviderEndpoint, request: ScrapeRequest) -> MappedProfile:
        """One request and one record in the call log."""
        began_s = time.monotonic()
        outcome, posts, cost = "cancelled", 0, self._cost(None)
        try:
            response = await self._send(endpoint, request.username)
            cost = self._cost(response)
            found = _read(response, request.username, self._now())
            outcome, posts = found.outcome, len(found.profile.posts) if found.profile else 0
        except ScrapeError as error:
            outcome = "timeout" if error.kind == "timeout" else "unavailable"
            cost = cost if error.was_sent else ScrapeCost(0)
            raise
        else:
            return found
        finally:
            await self._costs.track_apify_call(
                request, outcome, began_s=began_s, cost=cost, posts_scraped=posts
            )

    def _cost(self, response: _Response | None) -> ScrapeCost:
        """The cost in credits reported by ScraperAPI, otherwise the price of one plain request."""
        credits_text = response.headers.get("sa-credit-cost", "") if response else ""
        if credits_text.isascii() and credits_text.isdigit():
            return ScrapeCost(self._costs.price_of(PROVIDER, "credit", int(credits_text)))
        return ScrapeCost(self._costs.price_of(PROVIDER, "request", 1), is_estimated=True)

    async def _send(self, endpoint: ProviderEndpoint, username: str) -> _Response:
        if self._transport is None:
            self._transport = httpx.AsyncHTTPTransport(verify=default_ssl_context())
        page = f"{PROFILE_URL}?{urlencode({'username': username})}"
        query = urlencode({"api_key": endpoint.key, "url": page, "keep_headers": "true"})
        request = httpx.Request(
            "GET",
            f"{(endpoint.url or API_URL).rstrip('/')}/?{query}",
            headers={"x-ig-app-id": WEB_APP_ID, "accept": "application/json"},
            extensions={"timeout": httpx.Timeout(self._response_s).as_dict()},
        )
        try:
            async with asyncio.timeout(self._response_s):
                return await self._read(self._transport, request)
        except (TimeoutError, httpx.TimeoutException) as error:
            was_sent = not isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
            raise ScrapeError("timeout", was_sent=was_sent) from None
        except httpx.HTTPError as error:
            was_sent = not isinstance(error, httpx.ConnectError)
            raise ScrapeError("connection", detail=type(error).__name__, was_sent=was_sent) from None

    async def _read(self, transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> _Response:
        response = await transport.handle_async_request(request)
        try:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > BODY_BYTES_MAX:
                    raise ScrapeError("malformed_response", detail="too long")
            return _Response(response.status_code, dict(response.headers), bytes(body))
        finally:
            await response.aclose()


def _log_rejection(error: ScrapeError | TimeoutError) -> None:
    if isinstance(error, ScrapeError) and error.kind == "rejected":
        hint = "Check the ScraperAPI key and its credits."
        log.error("scraperapi_rejected_us", detail=error.detail, hint=hint)


def _read(response: _Response, username: str, now: datetime) -> MappedProfile:
    if response.status == HTTPStatus.NOT_FOUND:
        return MappedProfile("not_found")
    if response.status != HTTPStatus.OK:
        raise _error_of(response)
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        raise ScrapeError("malformed_response", detail="not JSON") from None
    return read_web_profile(document, username, now=now)


def _error_of(response: _Response) -> ScrapeError:
    kind: ErrorKind = "unavailable"
    if response.status == HTTPStatus.TOO_MANY_REQUESTS:
        kind = "limited"
    elif response.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        kind = "rejected"
    after_s = retry_after_s(response.headers.get("retry-after"))
    # ScraperAPI charges only for responses with 200 and 404.
    return ScrapeError(kind, detail=str(response.status), retry_after_s=after_s, was_sent=False)

"""Instagram's web profiles via ScraperAPI, with at most twelve posts."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlencode

import httpx
import msgspec
import structlog

from features.analysis.application.ports import ProfileSource
from features.analysis.domain.errors import ProfilesUnavailable
from features.analysis.domain.profile.profile import Scrape
from features.costs.application.ports import CallLog
from features.costs.domain.prices import PriceBook
from infrastructure.provider_endpoint import EndpointResolver, ProviderEndpoint
from infrastructure.scraping.apify_mapping import MappedProfile
from infrastructure.scraping.cost_recorder import ScrapeCostRecorder
from infrastructure.scraping.errors import (
    ScrapeError,
    ScrapeRetryLimits,
    Sleep,
    Trouble,
    told_retry_after_s,
)
from infrastructure.scraping.web_profile_mapping import POSTS_MAX, read_web_profile
from infrastructure.tls import default_ssl_context
from shared.cancellation import run_uncancelled
from shared.clock import Clock
from shared.llm import CostOwner
from shared.retry_after import retry_after_s

PROVIDER = "scraperapi"
API_URL = "https://api.scraperapi.com"
PROFILE_URL = "https://www.instagram.com/api/v1/users/web_profile_info/"
WEB_APP_ID = "936619743392459"  # sent by Instagram's own pages; required
ANSWER_S = 75.0  # ScraperAPI itself tries for 70 s
LOOK_S = 240.0
BODY_BYTES_MAX = 8 * 1024 * 1024

log: structlog.stdlib.BoundLogger = structlog.get_logger("scraping")


class _Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes


class ScraperApiProfiles(ProfileSource):
    """Uses the bare transport, because the URL contains the key and httpx's client logs URLs."""

    def __init__(
        self,
        where: EndpointResolver,
        log: CallLog,
        prices: PriceBook,
        *,
        now: Clock,
        answer_s: float = ANSWER_S,
        look_s: float = LOOK_S,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._where = where
        self._log = log
        self._prices = prices
        self._now = now
        self._answer_s = answer_s
        self._look_s = look_s
        self._sleep = sleep
        self._jitter = jitter
        self._transport: httpx.AsyncHTTPTransport | None = None

    async def fetch(self, username: str, *, posts_max: int, spender: CostOwner) -> Scrape:
        assert posts_max <= POSTS_MAX, "it cannot show more"
        access = await self._where()
        receipts = ScrapeCostRecorder(
            *(self._log, self._prices, self._now, PROVIDER, username, posts_max, spender),
            is_simulated=access.is_simulated,
        )
        try:
            async with asyncio.timeout(self._look_s):
                finding = await self._find(access, username, receipts)
        except (ScrapeError, TimeoutError) as error:
            _note(error)
            raise ProfilesUnavailable(username=username, retry_after_s=told_retry_after_s(error)) from None
        return Scrape(
            outcome=finding.outcome,
            profile=finding.profile,
            posts_asked=posts_max,
            scraped_at=self._now(),
            provider=PROVIDER,
            is_simulated=access.is_simulated,
        )

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None

    async def _find(
        self, access: ProviderEndpoint, username: str, receipts: ScrapeCostRecorder
    ) -> MappedProfile:
        patience = ScrapeRetryLimits(self._sleep, self._jitter)
        while True:
            try:
                return await self._attempt(access, username, receipts)
            except ScrapeError as trouble:
                await patience.after(trouble)

    async def _attempt(
        self, access: ProviderEndpoint, username: str, receipts: ScrapeCostRecorder
    ) -> MappedProfile:
        """One request and one record in the call log."""
        begun_at_s = time.monotonic()
        outcome, posts_found, cost = "cancelled", 0, _cost(receipts, None)
        try:
            answer = await self._ask(access, username)
            cost = _cost(receipts, answer)
            finding = _read(answer, receipts)
            outcome, posts_found = finding.outcome, len(finding.profile.posts) if finding.profile else 0
        except ScrapeError as trouble:
            outcome = "timeout" if trouble.trouble == "timeout" else "unavailable"
            cost = cost if trouble.was_sent else (0, False)
            raise
        else:
            return finding
        finally:
            await run_uncancelled(
                receipts.write(outcome, begun_at_s=begun_at_s, cost=cost, posts_found=posts_found)
            )

    async def _ask(self, access: ProviderEndpoint, username: str) -> _Answer:
        if self._transport is None:
            self._transport = httpx.AsyncHTTPTransport(verify=default_ssl_context())
        page = f"{PROFILE_URL}?{urlencode({'username': username})}"
        query = urlencode({"api_key": access.key, "url": page, "keep_headers": "true"})
        request = httpx.Request(
            "GET",
            f"{(access.url or API_URL).rstrip('/')}/?{query}",
            headers={"x-ig-app-id": WEB_APP_ID, "accept": "application/json"},
            extensions={"timeout": httpx.Timeout(self._answer_s).as_dict()},
        )
        try:
            async with asyncio.timeout(self._answer_s):
                return await self._read(self._transport, request)
        except (TimeoutError, httpx.TimeoutException) as error:
            was_sent = not isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
            raise ScrapeError("timeout", was_sent=was_sent) from None
        except httpx.HTTPError as error:
            was_sent = not isinstance(error, httpx.ConnectError)
            raise ScrapeError("connection", detail=type(error).__name__, was_sent=was_sent) from None

    async def _read(self, transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> _Answer:
        response = await transport.handle_async_request(request)
        try:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > BODY_BYTES_MAX:
                    raise ScrapeError("garbled", detail="too long")
            return _Answer(response.status_code, dict(response.headers), bytes(body))
        finally:
            await response.aclose()


def _note(error: ScrapeError | TimeoutError) -> None:
    if isinstance(error, ScrapeError) and error.trouble == "refused":
        hint = "Check the ScraperAPI key and its credits."
        log.error("scraperapi_refuses_us", detail=error.detail, hint=hint)


def _read(answer: _Answer, receipts: ScrapeCostRecorder) -> MappedProfile:
    if answer.status == HTTPStatus.NOT_FOUND:
        return MappedProfile("not_found")
    if answer.status != HTTPStatus.OK:
        raise _refusal(answer)
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise ScrapeError("garbled", detail="not JSON") from None
    return read_web_profile(document, receipts.username, now=receipts.now())


def _refusal(answer: _Answer) -> ScrapeError:
    trouble: Trouble = "unavailable"
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        trouble = "not_now"
    elif answer.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        trouble = "refused"
    after_s = retry_after_s(answer.headers.get("retry-after"))
    # ScraperAPI charges only for responses with 200 and 404.
    return ScrapeError(trouble, detail=str(answer.status), retry_after_s=after_s, was_sent=False)


def _cost(receipts: ScrapeCostRecorder, answer: _Answer | None) -> tuple[int | None, bool]:
    """The cost in credits reported by ScraperAPI, otherwise the price of one plain request."""
    credits_text = answer.headers.get("sa-credit-cost", "") if answer else ""
    if credits_text.isascii() and credits_text.isdigit():
        return receipts.prices.of_units(PROVIDER, "credit", int(credits_text), receipts.now()), False
    return receipts.prices.of_units(PROVIDER, "request", 1, receipts.now()), True

"""Rate limit windows in Redis or Valkey."""

import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import structlog

from infrastructure.rate_limits.memory import MemoryWindows
from infrastructure.rate_limits.windows import BatchVerdict, Request, WindowStore, dealt_out, grouped
from infrastructure.resilience.micro_batcher import MicroBatcher
from shared.errors import Unavailable
from shared.middleware.rate_limits import Limit, Verdict

RETRY_S = 2.0  # after a failure

T = TypeVar("T")
Address = Callable[[], Awaitable[str]]

log: structlog.stdlib.BoundLogger = structlog.get_logger("rate_limits")


class Client(Protocol):
    async def take(self, wanted: list[tuple[Request, int]]) -> dict[Request, BatchVerdict]: ...
    async def ping(self) -> None: ...
    async def close(self) -> None: ...


class RedisUnavailable(Unavailable):
    code = "rate_limit_store_unavailable"
    text = "Redis does not answer ({reason}): each process counts for itself"


class RedisWindows(WindowStore):
    """Windows in Redis, with windows of this process as the fallback, so that no request fails in an outage.

    During an outage it retries every two seconds and reads the URL again, because its password may have
    changed.
    """

    def __init__(self, address: Address, *, now_s: Callable[[], float] = time.monotonic) -> None:
        # Lazy import: it takes half a second, and most processes do not need it.
        from infrastructure.rate_limits.redis_client import RedisClient  # noqa: PLC0415

        self._connect: Callable[[str], Client] = RedisClient
        self._address = address
        self._now_s = now_s
        self._spare = MemoryWindows()
        self._batches = MicroBatcher(self._take_all)
        self._client: Client | None = None
        self._outage = ""  # its reason; empty while Redis responds
        self._retry_at_s = 0.0

    async def take(self, key: str, limit: Limit) -> Verdict:
        try:
            return await self._batches.ask((key, limit))
        except RedisUnavailable:
            return await self._spare.take(key, limit)

    async def state(self) -> str:
        await self._attempt(lambda client: client.ping())
        return "Redis"

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _take_all(self, requests: list[Request]) -> list[Verdict]:
        if self._outage:
            if self._now_s() < self._retry_at_s:
                raise RedisUnavailable(reason=self._outage)
            # Only this batch tests whether Redis is back, so that other requests do not wait.
            self._retry_at_s = self._now_s() + RETRY_S
        shares = await self._attempt(lambda client: client.take(grouped(requests)))
        return dealt_out(requests, shares)

    async def _attempt(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        try:
            if self._client is None:
                self._client = self._connect(await self._address())
            answer = await ask(self._client)
        except Exception as error:
            # Only the type of the error: its text may contain the URL.
            await self._begin_outage(type(error).__name__)
            raise RedisUnavailable(reason=self._outage) from error
        self._end_outage()
        return answer

    async def _begin_outage(self, reason: str) -> None:
        if not self._outage:
            log.warning("redis_away", reason=reason)
        self._outage, self._retry_at_s = reason, self._now_s() + RETRY_S
        await self.close()

    def _end_outage(self) -> None:
        if self._outage:
            log.info("redis_back")
        self._outage = ""

"""Redis client, the only module that imports the redis package. Imported only when Redis is configured."""

import hashlib
from typing import Any

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost

from infrastructure.rate_limits.windows import BatchVerdict, Request

TIMEOUT_S = 1.0
PREFIX = "oslira:rate:"

# The same algorithm as the SQL function traffic.take, for one key: a hash from slot to granted requests.
TAKE = """
local wanted, limit, slot_s = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]) / 60
local clock = redis.call('TIME')
local now_s = clock[1] + clock[2] / 1000000
local now_slot = math.floor(now_s / slot_s)
local stored = redis.call('HGETALL', KEYS[1])
local newest = now_slot
for i = 1, #stored, 2 do
    local slot = tonumber(stored[i])
    -- A clock that went backwards counts on in the newest slot, unless it had been far ahead.
    if slot - now_slot <= 60 then newest = math.max(newest, slot) end
end
local taken, oldest, gone = 0, newest, {}
for i = 1, #stored, 2 do
    local slot = tonumber(stored[i])
    if slot < newest - 60 or slot > newest then
        gone[#gone + 1] = stored[i]
    else
        taken = taken + tonumber(stored[i + 1])
        oldest = math.min(oldest, slot)
    end
end
local granted = math.max(math.min(wanted, limit - taken), 0)
if granted > 0 then
    if #gone > 0 then redis.call('HDEL', KEYS[1], unpack(gone)) end
    redis.call('HINCRBY', KEYS[1], string.format('%.0f', newest), granted)
    redis.call('PEXPIRE', KEYS[1], math.ceil(((newest + 62) * slot_s - now_s) * 1000))
end
local reset_ms = math.max(math.ceil(((oldest + 61) * slot_s - now_s) * 1000), 0)
return {granted, math.max(limit - taken - granted, 0), reset_ms}
"""

TAKE_SHA = hashlib.sha1(TAKE.encode(), usedforsecurity=False).hexdigest()


class RedisClient:
    """Client for Redis 5 and later, and for Valkey."""

    def __init__(self, url: str) -> None:
        # Options in the URL override these defaults.
        options: dict[str, Any] = {
            "socket_timeout": TIMEOUT_S,
            "socket_connect_timeout": TIMEOUT_S,
            # Reconnect once when an idle connection was closed; do not repeat a command that timed out.
            "retry": Retry(NoBackoff(), 1, supported_errors=(ConnectionLost,)),
            **parse_url(url),
        }
        self._redis = Redis.from_pool(ConnectionPool(**options))

    async def take(self, wanted: list[tuple[Request, int]]) -> dict[Request, BatchVerdict]:
        """Take all in one round trip: the first command sends the script, the others refer to its hash."""
        async with self._redis.pipeline(transaction=False) as pipeline:
            for number, ((key, limit), count) in enumerate(wanted):
                call, script = (pipeline.evalsha, TAKE_SHA) if number else (pipeline.eval, TAKE)
                call(script, 1, PREFIX + key, count, limit.requests_max, limit.window_s)
            answers = await pipeline.execute()
        return {
            request: BatchVerdict(granted, remaining, reset_ms / 1_000)
            for (request, _), (granted, remaining, reset_ms) in zip(wanted, answers, strict=True)
        }

    async def ping(self) -> None:
        """Check that Redis responds and allows scripts."""
        await self._redis.eval("return 1", 0)

    async def close(self) -> None:
        await self._redis.aclose()

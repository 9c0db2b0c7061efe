"""Cache of earlier completions."""

import asyncio
from typing import Protocol

import msgspec
import structlog

from shared.ids import AccountId

TIMEOUT_S = 1.0  # a slower cache counts as unavailable

log: structlog.stdlib.BoundLogger = structlog.get_logger("ai")


class CachedCompletion(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    provider: str
    model: str
    is_simulated: bool


class CompletionStore(Protocol):
    """Completions are stored per account. Both methods may fail."""

    async def find(self, account_id: AccountId, answer_key: bytes) -> CachedCompletion | None: ...

    async def keep(self, account_id: AccountId, answer_key: bytes, answer: CachedCompletion) -> None: ...


class CompletionCache:
    """Cache that never fails: an error or a timeout counts as a miss. Requests without an account are not
    cached. With ``takes_simulated=False`` completions of a simulator count as misses.
    """

    def __init__(self, cache: CompletionStore | None, *, takes_simulated: bool = True) -> None:
        self._cache = cache
        self._takes_simulated = takes_simulated

    async def find(self, account_id: AccountId | None, answer_key: bytes) -> CachedCompletion | None:
        if self._cache is None or account_id is None:
            return None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                found = await self._cache.find(account_id, answer_key)
        except Exception as error:  # noqa: BLE001  on any error the provider is called instead
            log.warning("answers_not_read", cause=type(error).__name__)
            return None
        return None if found and found.is_simulated and not self._takes_simulated else found

    async def keep(self, account_id: AccountId | None, answer_key: bytes, answer: CachedCompletion) -> None:
        if self._cache is None or account_id is None:
            return
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._cache.keep(account_id, answer_key, answer)
        except Exception as error:  # noqa: BLE001  on any error the caller still gets the completion
            log.warning("answer_not_kept", cause=type(error).__name__)

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

    async def find(self, account_id: AccountId, completion_key: bytes) -> CachedCompletion | None: ...

    async def put(
        self, account_id: AccountId, completion_key: bytes, completion: CachedCompletion
    ) -> None: ...


class CompletionCache:
    """Cache that never fails: an error or a timeout counts as a miss. Requests without an account are not
    cached. With ``takes_simulated=False`` completions of a simulator count as misses.
    """

    def __init__(self, store: CompletionStore | None, *, takes_simulated: bool = True) -> None:
        self._store = store
        self._takes_simulated = takes_simulated

    async def find(self, account_id: AccountId | None, completion_key: bytes) -> CachedCompletion | None:
        if self._store is None or account_id is None:
            return None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                found = await self._store.find(account_id, completion_key)
        except Exception as error:  # noqa: BLE001  on any error the provider is called instead
            log.warning("completion_not_read", cause=type(error).__name__)
            return None
        return None if found and found.is_simulated and not self._takes_simulated else found

    async def put(
        self, account_id: AccountId | None, completion_key: bytes, completion: CachedCompletion
    ) -> None:
        if self._store is None or account_id is None:
            return
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._store.put(account_id, completion_key, completion)
        except Exception as error:  # noqa: BLE001  on any error the caller still gets the completion
            log.warning("completion_not_stored", cause=type(error).__name__)

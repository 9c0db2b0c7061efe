"""DNS lookups of tenants' hosts in a separate thread pool."""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial

from infrastructure.resilience.daemon_threads import DaemonThreadPool
from shared.ids import AccountId

THREADS = 8
ACCOUNT_MAX = 2
TIMEOUT_S = 5.0

egress_account: ContextVar[AccountId | None] = ContextVar("egress_account", default=None)
"""The account on whose behalf a request is sent."""


def system_lookup(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(slots=True)
class _AccountLookups:
    free: asyncio.Semaphore
    users: int = 0  # lookups that wait or run


class Lookups:
    """A nameserver that does not respond blocks a thread for a long time. The event loop's own threads serve
    provider calls, so tenants' lookups do not use them, and one account occupies at most ``account_max``
    threads. A lookup that has timed out counts until its thread is free.
    """

    def __init__(
        self,
        resolve_host: Callable[[str, int], list[str]] = system_lookup,
        *,
        threads: int = THREADS,
        account_max: int = ACCOUNT_MAX,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._resolve_host = resolve_host
        self._threads = DaemonThreadPool("lookups", size=threads)
        self._account_max = account_max
        self._timeout_s = timeout_s
        self._lookups: dict[AccountId | None, _AccountLookups] = {}

    async def resolve(self, host: str, port: int) -> list[str]:
        """Raises TimeoutError and other OSErrors."""
        account_id = egress_account.get()
        async with asyncio.timeout(self._timeout_s):
            await self._enter(account_id)
            call = self._threads.submit(partial(self._resolve_host, host, port))
            call.add_done_callback(partial(self._ended, asyncio.get_running_loop(), account_id))
            return await asyncio.wrap_future(call)

    def close(self) -> None:
        self._threads.close()

    async def _enter(self, account_id: AccountId | None) -> None:
        lookups = self._lookups.setdefault(account_id, _AccountLookups(asyncio.Semaphore(self._account_max)))
        lookups.users += 1
        try:
            await lookups.free.acquire()
        except BaseException:
            self._release_slot(account_id, lookups)
            raise

    def _ended(
        self, loop: asyncio.AbstractEventLoop, account_id: AccountId | None, _: Future[list[str]]
    ) -> None:
        """Called by the thread, or by a caller that is cancelled before a thread has started."""
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._leave, account_id)

    def _leave(self, account_id: AccountId | None) -> None:
        lookups = self._lookups[account_id]
        lookups.free.release()
        self._release_slot(account_id, lookups)

    def _release_slot(self, account_id: AccountId | None, lookups: _AccountLookups) -> None:
        lookups.users -= 1
        if lookups.users == 0:
            del self._lookups[account_id]

"""Leases that serialize changes of one subscription across all processes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from features.billing.application.ports import SubscriptionLocks
from features.billing.domain.errors import SubscriptionBusy
from infrastructure.resilience.semaphore import DistributedSemaphore
from shared.ids import AccountId

WAIT_S_MAX = 12.0  # a change takes a few seconds, and a request may take 25


class LeasedSubscriptionLocks(SubscriptionLocks):
    """Locks based on leases: no transaction stays open, and the lease of a killed process expires."""

    def __init__(self, slots: DistributedSemaphore, *, wait_s_max: float = WAIT_S_MAX) -> None:
        self._slots = slots
        self._wait_s_max = wait_s_max

    @asynccontextmanager
    async def hold(self, account_id: AccountId) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self._wait_s_max):
                    await stack.enter_async_context(self._slots.acquire(f"subscription {account_id}", 1))
            except TimeoutError:
                raise SubscriptionBusy from None
            yield

"""Micro-batching of concurrent calls into one round trip."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from shared.errors import Unavailable

Request = TypeVar("Request")
Result = TypeVar("Result")

SENDERS_MAX = 2  # one batch is sent while the results of another are processed


class MicroBatcher(Generic[Request, Result]):
    """Calls that arrive while a batch is in progress join the next one, so that load increases the batch size
    and not the queue. A single call is sent at once.
    """

    def __init__(
        self,
        run_batch: Callable[[list[Request]], Awaitable[list[Result]]],
        *,
        size_max: int = 64,
    ) -> None:
        self._run_batch = run_batch
        self._size_max = size_max
        self._waiting: list[tuple[Request, asyncio.Future[Result]]] = []
        self._senders: set[asyncio.Task[None]] = set()
        self._senders_count = 0

    async def ask(self, request: Request) -> Result:
        """Cancelling a call does not affect the others in its batch."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, result))
        if self._senders_count < SENDERS_MAX:
            self._senders_count += 1
            sender = asyncio.create_task(self._send_all())
            self._senders.add(sender)  # keeps a strong reference to the task
            sender.add_done_callback(self._senders.discard)
        return await result

    async def _send_all(self) -> None:
        """A batch is formed when it is sent, so that calls which arrive in the meantime are included."""
        while self._waiting:
            batch = self._waiting[: self._size_max]
            del self._waiting[: self._size_max]
            await self._run(batch)
        # Not in the done callback: a call that arrives before it would start no sender and wait forever.
        self._senders_count -= 1

    async def _run(self, batch: list[tuple[Request, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._run_batch([request for request, _ in batch])
        except Exception as error:  # noqa: BLE001  raised in the callers
            await self._fail(batch, error)
            return
        for (_, waiter), result in zip(batch, results, strict=True):
            if not waiter.done():
                waiter.set_result(result)

    async def _fail(self, batch: list[tuple[Request, asyncio.Future[Result]]], error: Exception) -> None:
        """One call may have failed the whole batch: each is repeated alone, except after Unavailable."""
        if len(batch) > 1 and not isinstance(error, Unavailable):
            for one in batch:
                await self._run([one])
            return
        for _, waiter in batch:
            if not waiter.done():
                waiter.set_exception(error)

"""Many like questions in one round trip."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from shared.errors import Unavailable

Question = TypeVar("Question")
Answer = TypeVar("Answer")

SENDERS_MAX = 2  # so that one batch is asked while the answers of another are used


class MicroBatcher(Generic[Question, Answer]):
    """Whoever asks while a batch is under way rides in the next one, so that load makes batches larger
    instead of queues longer. Alone, a question goes out at once.
    """

    def __init__(
        self,
        ask_all: Callable[[list[Question]], Awaitable[list[Answer]]],
        *,
        size_max: int = 64,
    ) -> None:
        self._ask_all = ask_all
        self._size_max = size_max
        self._waiting: list[tuple[Question, asyncio.Future[Answer]]] = []
        self._senders: set[asyncio.Task[None]] = set()
        self._senders_count = 0

    async def ask(self, question: Question) -> Answer:
        """A cancelled asker leaves; the others of its batch do not notice."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._senders_count < SENDERS_MAX:
            self._senders_count += 1
            sender = asyncio.create_task(self._send_all())
            self._senders.add(sender)  # or nobody would hold it
            sender.add_done_callback(self._senders.discard)
        return await answer

    async def _send_all(self) -> None:
        """A batch is made when it leaves, not when it was called for: who asks meanwhile gets on."""
        while self._waiting:
            batch = self._waiting[: self._size_max]
            del self._waiting[: self._size_max]
            await self._run(batch)
        # At once, not when the task is called done: who asks in between would wait for nobody.
        self._senders_count -= 1

    async def _run(self, batch: list[tuple[Question, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._ask_all([question for question, _ in batch])
        except Exception as error:  # noqa: BLE001  it is for the askers to handle
            await self._fail(batch, error)
            return
        for (_, waiter), answer in zip(batch, answers, strict=True):
            if not waiter.done():
                waiter.set_result(answer)

    async def _fail(self, batch: list[tuple[Question, asyncio.Future[Answer]]], error: Exception) -> None:
        """One question may have spoilt it for all: each is asked again alone, unless nobody answers."""
        if len(batch) > 1 and not isinstance(error, Unavailable):
            for one in batch:
                await self._run([one])
            return
        for _, waiter in batch:
            if not waiter.done():
                waiter.set_exception(error)

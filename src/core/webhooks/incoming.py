"""Background service that processes stored Stripe events."""

import asyncio
from contextlib import suppress

import structlog

from features.billing.application.stripe_events.process import StripeEventProcessor
from features.billing.domain.event_queue import ClaimedEvent
from shared.errors import Unavailable

AT_ONCE_MAX = 4
POLL_INTERVAL_S = 0.5  # another process may have stored an event

log: structlog.stdlib.BoundLogger = structlog.get_logger("inbox")


class StripeEventWorker:
    """Claims and processes up to AT_ONCE_MAX events; ``arrivals`` is set when this process stores one."""

    def __init__(self, processor: StripeEventProcessor, arrivals: asyncio.Event) -> None:
        self._queue = processor.queue
        self._processor = processor
        self._arrivals = arrivals

    async def attend(self, stopping: asyncio.Event) -> None:
        under_way: set[asyncio.Task[None]] = set()
        stopped = asyncio.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                self._arrivals.clear()  # before the claim: an event stored after the claim sets it again
                free = AT_ONCE_MAX - len(under_way)
                claimed = await self._queue.claim(free)
                under_way |= {asyncio.create_task(self._work_on(event)) for event in claimed}
                if len(claimed) == free:
                    await asyncio.wait({*under_way, stopped}, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await self._until_more(stopped)
                under_way = {task for task in under_way if not task.done()}
        finally:
            stopped.cancel()
            await asyncio.gather(*under_way)

    async def _until_more(self, stopped: asyncio.Task[bool]) -> None:
        arrived = asyncio.create_task(self._arrivals.wait())
        await asyncio.wait({arrived, stopped}, timeout=POLL_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED)
        arrived.cancel()
        with suppress(asyncio.CancelledError):
            await arrived

    async def _work_on(self, event: ClaimedEvent) -> None:
        """Never raises: a failure is stored in the event's row, or the lease of its claim expires."""
        try:
            ending, error = await self._processor.process(event)
        except Unavailable as unavailable:
            log.warning("event_left", stripe_event=event.id, type=event.type, error=unavailable.code)
            return
        except Exception:
            log.exception("event_left", stripe_event=event.id, type=event.type)
            return
        if error is not None:
            log.error("event_failed", stripe_event=event.id, type=event.type, ending=ending, exc_info=error)
        elif ending in ("dead", "parked"):
            log.warning("event_waits", stripe_event=event.id, type=event.type, ending=ending)
        else:
            log.info("event_done", stripe_event=event.id, type=event.type, ending=ending)

"""Background service that processes stored Stripe events."""

import asyncio

import structlog

from core.webhooks.claim_loop import ClaimLoop
from features.billing.application.stripe_events.process import StripeEventProcessor
from features.billing.domain.event_queue import ClaimedEvent
from shared.errors import Unavailable

ACTIVE_MAX = 4
POLL_INTERVAL_S = 0.5  # another process may have stored an event

log: structlog.stdlib.BoundLogger = structlog.get_logger("stripe_events")


class StripeEventWorker:
    """Processes up to ACTIVE_MAX events at a time; ``stored`` is set when this process stores one."""

    def __init__(self, processor: StripeEventProcessor, stored: asyncio.Event) -> None:
        self._processor = processor
        self._loop = ClaimLoop(
            claim=processor.queue.claim,
            process=self._process,
            active_max=ACTIVE_MAX,
            poll_interval_s=POLL_INTERVAL_S,
            arrived=stored,
        )

    async def run(self, stopping: asyncio.Event) -> None:
        await self._loop.run(stopping)

    async def _process(self, event: ClaimedEvent) -> None:
        """Never raises: a failure is stored in the event's row, or the lease of its claim expires."""
        try:
            ending, error = await self._processor.process(event)
        except Unavailable as unavailable:
            log.warning("event_interrupted", stripe_event=event.id, type=event.type, error=unavailable.code)
            return
        except Exception:
            log.exception("event_failed", stripe_event=event.id, type=event.type)
            return
        if error is not None:
            log.error("event_failed", stripe_event=event.id, type=event.type, ending=ending, exc_info=error)
        elif ending in ("dead", "parked"):
            log.warning("event_deferred", stripe_event=event.id, type=event.type, ending=ending)
        else:
            log.info("event_processed", stripe_event=event.id, type=event.type, ending=ending)

"""Background service that sends webhook messages to tenants' endpoints."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from features.webhooks.application.ports import Outbox
from features.webhooks.application.send_delivery import SendDelivery
from features.webhooks.domain.delivery import ClaimedDelivery
from shared.errors import Unavailable

UNDER_WAY_MAX = 20  # deliveries of this process
APIECE_MAX = 5  # deliveries of one account over all processes; one host may have twice as many
LEASE = timedelta(seconds=60)  # much longer than one attempt
POLL_INTERVAL_S = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger("notices")


@dataclass(frozen=True, slots=True)
class WebhookDeliveryWorker:
    outbox: Outbox
    dispatch: SendDelivery
    poll_interval_s: float = POLL_INTERVAL_S
    _under_way: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]], init=False)

    async def attend(self, stopping: asyncio.Event) -> None:
        """Deliver until ``stopping`` is set. Active deliveries are awaited, also after an error."""
        told_to_stop = asyncio.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                has_taken = await self._take()
                # While deliveries are waiting, a finished one is replaced without waiting for the poll.
                wake_ups = {told_to_stop, *self._under_way} if has_taken or self._is_full else {told_to_stop}
                await asyncio.wait(
                    wake_ups, timeout=self.poll_interval_s, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            told_to_stop.cancel()
            with suppress(asyncio.CancelledError):
                await told_to_stop
            await asyncio.gather(*self._under_way)

    @property
    def _is_full(self) -> bool:
        return len(self._under_way) >= UNDER_WAY_MAX

    async def _take(self) -> bool:
        if self._is_full:
            return False
        room = UNDER_WAY_MAX - len(self._under_way)
        claimed = await self.outbox.claim(room, per_account_max=APIECE_MAX, lease=LEASE)
        for due in claimed:
            task = asyncio.create_task(self._carry(due))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return bool(claimed)

    async def _carry(self, due: ClaimedDelivery) -> None:
        """Never raises: after an internal failure the delivery is claimed again when its lease expires."""
        facts = {"delivery": str(due.id), "account": str(due.account_id), "type": due.type}
        try:
            verdict = await self.dispatch.deliver(due)
        except Unavailable as error:
            log.warning("delivery_interrupted", error=error.code, **facts)
        except Exception:
            log.exception("delivery_failed", **facts)
        else:
            if verdict is not None and verdict.disables is not None:
                log.info("endpoint_disabled", endpoint=str(due.endpoint_id), reason=verdict.disables, **facts)

"""Background service that sends webhook messages to tenants' endpoints."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import structlog

from core.webhooks.claim_loop import ClaimLoop
from features.webhooks.application.ports import Outbox
from features.webhooks.application.send_delivery import SendDelivery
from features.webhooks.domain.delivery import ClaimedDelivery
from shared.errors import Unavailable

ACTIVE_MAX = 20  # deliveries of this process
PER_ACCOUNT_MAX = 5  # deliveries of one account over all processes; one host may have twice as many
LEASE = timedelta(seconds=60)  # much longer than one attempt
POLL_INTERVAL_S = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger("webhooks")


@dataclass(frozen=True, slots=True)
class WebhookDeliveryWorker:
    outbox: Outbox
    sender: SendDelivery
    poll_interval_s: float = POLL_INTERVAL_S

    async def run(self, stopping: asyncio.Event) -> None:
        """Deliver until ``stopping`` is set. Active deliveries are awaited, also after an error."""
        loop = ClaimLoop(
            claim=partial(self.outbox.claim, per_account_max=PER_ACCOUNT_MAX, lease=LEASE),
            process=self._deliver,
            active_max=ACTIVE_MAX,
            poll_interval_s=self.poll_interval_s,
        )
        await loop.run(stopping)

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
        """Never raises: after an internal failure the delivery is claimed again when its lease expires."""
        facts = {"delivery": str(claimed.id), "account": str(claimed.account_id), "type": claimed.type}
        try:
            verdict = await self.sender.deliver(claimed)
        except Unavailable as error:
            log.warning("delivery_interrupted", error=error.code, **facts)
        except Exception:
            log.exception("delivery_failed", **facts)
        else:
            if verdict is not None and verdict.disables is not None:
                log.info(
                    "endpoint_disabled", endpoint=str(claimed.endpoint_id), reason=verdict.disables, **facts
                )

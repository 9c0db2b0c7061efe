"""Receiver of Stripe's webhook: verifies the signature and stores the event before the response."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from features.billing.application.stripe_events.ports import StripeEventStore
from features.billing.domain.errors import BillingNotConfigured
from features.billing.domain.signatures import check_signature
from features.billing.domain.stripe_events import read_event

Secrets = Callable[[], Awaitable[tuple[str, ...]]]
"""Read for every event because secrets rotate. An empty tuple means that billing is not configured."""


@dataclass(frozen=True, slots=True)
class StripeEventReceiver:
    events: StripeEventStore
    secrets: Secrets
    now_s: Callable[[], float]
    wake_worker: Callable[[], object]  # wakes the event worker of this process before its next poll

    async def receive(self, body: bytes, signature: bytes) -> bool:
        """Store the event durably and return whether it is new. Raises BillingNotConfigured, Malformed."""
        secrets = await self.secrets()
        if not secrets:
            raise BillingNotConfigured
        check_signature(body, signature, secrets, self.now_s())
        is_new = await self.events.add(read_event(body))
        if is_new:
            self.wake_worker()
        return is_new

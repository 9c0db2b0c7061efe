"""Taking in what Stripe sends: believed by its signature, kept before it is answered."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from features.billing.application.stripe_events.ports import StripeEventStore
from features.billing.domain.errors import BillingNotConfigured
from features.billing.domain.signatures import check_signature
from features.billing.domain.stripe_events import read_event

Secrets = Callable[[], Awaitable[tuple[str, ...]]]
"""Asked every time: one may have been exchanged for another. None of them: we have no Stripe."""


@dataclass(frozen=True, slots=True)
class StripeEventReceiver:
    events: StripeEventStore
    secrets: Secrets
    now_s: Callable[[], float]
    ring: Callable[[], object]  # whoever works on events in this process need not look for them

    async def take(self, body: bytes, signature: bytes) -> bool:
        """Whether it is new. When this returns the event is kept and will be worked on."""
        secrets = await self.secrets()
        if not secrets:
            raise BillingNotConfigured
        check_signature(body, signature, secrets, self.now_s())
        is_new = await self.events.add(read_event(body))
        if is_new:
            self.ring()
        return is_new

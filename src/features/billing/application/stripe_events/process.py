"""Processing of one Stripe event: fetch the state, then apply it and mark the event in one transaction."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from features.billing.application.stripe_events.apply import StripeEventEffects, SubscriptionChange
from features.billing.application.stripe_events.fetch_state import StateFetcher, StripeState
from features.billing.application.stripe_events.ports import StripeEventQueue, SubscriptionRepository
from features.billing.domain.errors import PriceUnknown
from features.billing.domain.event_queue import ClaimedEvent, WaitsForAnotherEvent, retry_decision
from shared.errors import DomainError, Unavailable

Ending = Literal["applied", "ignored", "pending", "parked", "dead", "taken_over"]
# Shorter than a claim, so that a slow worker times out before another worker can claim the event.
FETCH_S_MAX = 40.0
UNEXPECTED = "unexpected_error"
TOO_SLOW = "stripe_too_slow"


@dataclass(frozen=True, slots=True)
class StripeEventProcessor:
    queue: StripeEventQueue
    state_fetcher: StateFetcher
    events: StripeEventEffects
    repository: SubscriptionRepository
    random: Callable[[], float]

    async def process(self, event: ClaimedEvent) -> tuple[Ending, Exception | None]:
        """Return the event's new status and the unexpected error, if any. Raises Unavailable only if the
        database does not answer; the claim then expires.
        """
        try:
            state = await self._fetch_state(event)
            return await self._apply(event, state), None
        except (WaitsForAnotherEvent, PriceUnknown) as error:
            return await self._requeue(event, error.code, is_parked=True), None
        except Unavailable as error:
            return await self._requeue(event, error.code, is_counted=False), None
        except DomainError as error:
            return await self._requeue(event, error.code), None
        except Exception as error:  # noqa: BLE001  an unexpected error must not stop the other events
            return await self._requeue(event, UNEXPECTED), error

    async def _fetch_state(self, event: ClaimedEvent) -> StripeState:
        try:
            async with asyncio.timeout(FETCH_S_MAX):
                return await self.state_fetcher.fetch(event.payload)
        except TimeoutError:
            raise StripeTooSlow from None

    async def _apply(self, event: ClaimedEvent, state: StripeState) -> Ending:
        async with self.repository.transaction():
            if not await self.queue.lock(event):
                return "taken_over"
            change: SubscriptionChange = await self.events.apply(state)
            status: Literal["applied", "ignored"] = "ignored" if change.is_ignored else "applied"
            await self.queue.mark_processed(event, status, change.account_id, change.effects)
        return status

    async def _requeue(
        self, event: ClaimedEvent, error: str, *, is_counted: bool = True, is_parked: bool = False
    ) -> Ending:
        decision = retry_decision(
            event, error, is_counted=is_counted, is_parked=is_parked, random=self.random
        )
        return decision.status if await self.queue.requeue(event, decision) else "taken_over"


class StripeTooSlow(Unavailable):
    code = TOO_SLOW
    text = f"Stripe did not answer within {FETCH_S_MAX:.0f} seconds."

"""Working on one event: a look at Stripe, then what it changes and its tick in one transaction."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from features.billing.application.events import Change, StripeEvents
from features.billing.application.findings import Findings, Looks
from features.billing.application.inbox_ports import BillingBook, EventLine
from features.billing.domain.errors import PriceUnknown
from features.billing.domain.inbox import AwaitsAnother, ClaimedEvent, setback
from shared.errors import DomainError, Unavailable

Ending = Literal["applied", "ignored", "pending", "parked", "dead", "taken_over"]
# Shorter than a claim lasts: who has given up does not come back with old news.
LOOK_S_MAX = 40.0
UNEXPECTED = "unexpected_error"
TOO_SLOW = "stripe_too_slow"


@dataclass(frozen=True, slots=True)
class Consumption:
    line: EventLine
    looks: Looks
    events: StripeEvents
    book: BillingBook
    random: Callable[[], float]

    async def consume(self, event: ClaimedEvent) -> tuple[Ending, Exception | None]:
        """What became of it, and what nobody expected. Raises Unavailable only when the database is away:
        then the claim runs out.
        """
        try:
            findings = await self._look(event)
            return await self._apply(event, findings), None
        except (AwaitsAnother, PriceUnknown) as error:
            return await self._put_back(event, error.code, is_parked=True), None
        except Unavailable as error:
            return await self._put_back(event, error.code, is_counted=False), None
        except DomainError as error:
            return await self._put_back(event, error.code), None
        except Exception as error:  # noqa: BLE001  whatever it is, it is the event's: others go on
            return await self._put_back(event, UNEXPECTED), error

    async def _look(self, event: ClaimedEvent) -> Findings:
        try:
            async with asyncio.timeout(LOOK_S_MAX):
                return await self.looks.look(event.payload)
        except TimeoutError:
            raise StripeTooSlow from None

    async def _apply(self, event: ClaimedEvent, findings: Findings) -> Ending:
        async with self.book.transaction():
            if not await self.line.hold(event):
                return "taken_over"
            change: Change = await self.events.apply(findings)
            status: Literal["applied", "ignored"] = "ignored" if change.is_ignored else "applied"
            await self.line.tick(event, status, change.account_id, change.effects)
        return status

    async def _put_back(
        self, event: ClaimedEvent, error: str, *, is_counted: bool = True, is_parked: bool = False
    ) -> Ending:
        verdict = setback(event, error, is_counted=is_counted, is_parked=is_parked, random=self.random)
        return verdict.status if await self.line.put_back(event, verdict) else "taken_over"


class StripeTooSlow(Unavailable):
    code = TOO_SLOW

    def __str__(self) -> str:
        return f"Stripe did not answer within {LOOK_S_MAX:.0f} seconds."
